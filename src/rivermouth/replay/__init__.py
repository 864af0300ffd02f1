"""Offset ranges, their records, and the command ``replay``, which applies records once more."""
