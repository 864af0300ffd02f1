"""The protocol: what is recorded, and what is decided. Pure: values in, values out."""
