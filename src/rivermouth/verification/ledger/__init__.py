"""The checker's own reading of the ledger: commits, entries, the chain, the offsets covered."""
