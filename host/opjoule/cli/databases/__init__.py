"""`databases`: databases and studies that this computer can measure."""
