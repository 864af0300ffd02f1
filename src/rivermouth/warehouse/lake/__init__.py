"""A warehouse in a folder of this machine."""
