"""Databricks: the jobs, a workspace's secrets and checks, and the project of ``bundle init``.

What asks a workspace uses databricks-sdk (the extra ``databricks``), which is imported at first
use.
"""
