"""What the records of a batch become: one module per shape."""
