"""Formats: raw Kafka rows to decoded rows, one module per format."""
