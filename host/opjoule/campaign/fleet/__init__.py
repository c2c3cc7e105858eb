"""Cells of a campaign on several rigs, over Dask: one worker a rig, records brought to the campaign's folder."""
