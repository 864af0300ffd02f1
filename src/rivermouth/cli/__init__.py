"""The command ``rivermouth``: parses arguments, calls the other folders, prints and exits.

It decides nothing. A command imports Spark, Kafka and Delta only if it needs them, so the other
commands start fast and run where these packages are not installed.
"""
