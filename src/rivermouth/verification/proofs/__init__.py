"""What is compared: one proof for each shape of table, the quarantine and the offsets table."""
