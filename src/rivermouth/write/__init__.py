"""How a decoded batch gets into its table: one module per mode.

A writer turns (decoded batch, entry) into exactly one Delta commit that carries the entry,
or raises. It writes bad records ahead, into quarantine, tagged with the commit's id.
"""
