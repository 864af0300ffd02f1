"""JSON by docs/json.md: version 2 of the decoder. Nothing is left to the parser of the writer."""
