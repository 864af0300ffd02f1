"""Binary records to Arrow, many at once: shredded first, then made columns of.

A record of Avro or Protobuf can only be read from its first byte on: where a value begins is told
by those before it. So many records are read side by side (``lanes``): the first value of each, then
the second of each. What is found are numbers: values, and where text stands (``found``). Of these
``columns`` makes Arrow arrays, and says which records do not fit their columns.
"""
