"""The edge to Spark: what a session allows, where it finds a table, its errors as ours."""
