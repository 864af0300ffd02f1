"""A run: opening pipelines, committing their batches, saying what happened."""
