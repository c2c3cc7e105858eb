"""One directory a run: what was asked, found, measured and concluded."""
