"""What only a laptop needs: Java, the jars, a broker, a Spark session, scratch folders.

A cluster has its own Spark and Kafka and uses only the scratch folders.
"""
