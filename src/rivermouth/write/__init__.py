"""How decoded batches get into tables: what rows become, and how they land.

A *shape* (``shapes/``) says what the records of a batch become: rows to add, or one change per
key. A *landing* (``landings/``) makes exactly one Delta commit of that, with the ledger entry in
it, or raises; it writes bad records into quarantine ahead of the commit. Any landing serves any
shape of its kind (``rows``).
"""
