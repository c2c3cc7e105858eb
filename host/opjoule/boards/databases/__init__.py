"""The databases that can be measured, and how the rig handles each of them."""
