"""Offset ranges as values: which there are, what Kafka still holds of them, and their records."""
