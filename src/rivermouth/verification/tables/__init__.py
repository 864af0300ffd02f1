"""The checker's own reading of tables: in a folder, or under names in a catalog."""
