"""The schemas that records name by a number, and the registry that has them.

    registry (asks it) -> whole (one text of a schema and of all that it refers to)
        -> known (keeps what it said, in memory and on disk; gives it to a pipeline)

Only the driver asks. A task gets those that are known when its batch begins, and says which others
it meets (``errors.SchemasUnknown``).
"""
