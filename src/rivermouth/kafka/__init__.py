"""The edge to Kafka: facts about topics, the options of each client, log truncation."""
