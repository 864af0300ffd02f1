"""Traces and failpoints, for proofs and post-mortems. Off by default."""
