"""The errors of an object store."""

from __future__ import annotations

from rivermouth.errors import Passing, SetupError, StoreError


class StoreRefused(SetupError):
    code = "RM211"
    default_remedy = "Correct warehouse: and storage:"

    @classmethod
    def of_spark(cls, where: str, reason: str) -> StoreRefused:
        """What asks for Spark, for a ``reason``, where a table lies in an object store."""
        what = "the table asks for commits of Spark, which makes none in an object store"
        return cls(what, where=where, found=reason, remedy="Undo what is found: docs/stores.md")

    @classmethod
    def not_shared(cls, where: str, found: str) -> StoreRefused:
        """What tasks of a cluster wrote in a folder that the driver sees as another one."""
        return cls(
            "tasks write where the driver does not see it",
            where=where,
            expected="one folder under this path on all machines, or an object store",
            found=found,
            remedy="Mount the folder on all machines, or write warehouse: s3://bucket/prefix",
        )


class StoreUnreachable(StoreError):
    code = "RM803"
    default_remedy = "Correct storage.endpoint, or wait until the store answers; then run again"
    default_passes = Passing.IF_IT_WORKED
