"""The pages of campaigns and comparisons."""
