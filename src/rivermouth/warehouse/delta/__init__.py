"""The Delta protocol on a store of objects: what a log says, and commits of ours to it."""
