"""The edge to a Databricks workspace: its secrets, and whether all is there that a run needs.

Everything here goes through databricks-sdk, the extra ``databricks``, which is imported when
it is first needed.
"""
