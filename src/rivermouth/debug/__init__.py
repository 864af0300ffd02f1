"""Traces and failpoints: off by default, for proof and post-mortem."""
