"""`report`: an analysis done again."""
