"""The databases that can be measured, and what the rig does differently for each."""
