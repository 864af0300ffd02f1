"""The checker's own reading of record values and message keys, one module for each format."""
