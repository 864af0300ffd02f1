"""How rows land in a table, in one commit with their entry: one module per way."""
