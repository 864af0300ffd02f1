"""The demo: a broker, two topics, a driver that is killed at the worst moment, and the proof.

folder   the files of the demo, and which folder it may delete
records  auction bids and order changes, the same in every demo
filling  writes them into Kafka, with an aborted transaction between
story    the steps; each is a command that a person can type again
"""
