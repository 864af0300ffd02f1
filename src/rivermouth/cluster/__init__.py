"""A Spark cluster of the user's own: what travels to executors, and what they see."""
