"""A warehouse in memory, for tests: what the real ones promise, without Spark and files."""
