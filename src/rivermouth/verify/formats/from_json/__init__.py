"""JSON as Spark's ``from_json`` takes it: version 1 of the decoder."""
