"""The tables beside the target: offsets (a projection) and quarantine (written ahead)."""
