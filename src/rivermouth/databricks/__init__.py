"""The edge to a Databricks workspace: its secrets, and a check that it has what a run needs.

Everything here uses databricks-sdk (the extra ``databricks``), which is imported at first use.
"""
