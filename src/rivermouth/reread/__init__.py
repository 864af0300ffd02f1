"""The command ``replay``: records that a pipeline has read are applied once more, or elsewhere."""
