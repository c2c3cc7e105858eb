"""Attribution of energy to kinds of operation and activities, from power and the board's logs."""
