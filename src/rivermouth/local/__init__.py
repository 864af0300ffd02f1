"""Everything that runs on this machine alone: Java, the jars, a broker, a session.

Nothing here is needed on a cluster that brings its own Spark and Kafka.
"""
