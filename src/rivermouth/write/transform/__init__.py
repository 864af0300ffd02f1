"""A pipeline's own code in the batch: called, checked, and blamed for what it breaks."""
