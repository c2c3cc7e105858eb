"""Cells of a campaign on several rigs over Dask: one worker per rig, records fetched to the campaign's folder."""
