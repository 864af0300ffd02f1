"""What a run tells others while it runs: figures, lines in a log, alerts."""
