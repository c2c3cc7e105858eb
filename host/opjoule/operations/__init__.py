"""What the loader recorded on the board: operations, events, system samples."""
