"""The edge to Kafka: facts about topics, what each client calls an option, leader epochs."""
