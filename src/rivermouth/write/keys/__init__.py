"""Where the row of each key is: an index on the driver's disk, built from the key columns."""
