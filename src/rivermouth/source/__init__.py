"""Micro-batches from Kafka: planned by Structured Streaming, or by the driver."""
