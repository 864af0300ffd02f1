"""A warehouse in a catalog."""
