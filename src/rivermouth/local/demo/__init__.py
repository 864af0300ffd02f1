"""The demo: a broker, two topics, a driver killed at the worst moment, and the proof.

folder   what is made where, and what may be deleted
records  auction bids and order changes, the same at every run
filling  into Kafka, with an aborted transaction in between
story    the steps, each a command that can be typed again
"""
