"""The command ``rivermouth``: parses, calls the rooms, renders, and ends with an exit code.

Nothing is decided here. Spark, Kafka and Delta are imported inside the commands that need
them, so that the others start at once and run where these are not installed.
"""
