"""The checker's own reading of Kafka: identities, offsets, records."""
