"""Avro records to Arrow rows, each by the schema that it was written with.

``schema`` has schemas as values, ``grammar`` what stands in the bytes, ``plan`` what becomes of it
in the columns, and ``decoder`` reads records.
"""
