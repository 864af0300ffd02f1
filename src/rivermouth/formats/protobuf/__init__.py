"""Protobuf records to Arrow rows.

``schema`` has message types as values, ``scan`` finds the fields in the bytes, ``plan`` says what
becomes of them in the columns, and ``decoder`` reads records.
"""
