"""What the scripts in ``jobs/`` share. They import nothing else of rivermouth."""

from rivermouth.job.job import ACCEPTED, WEEK_HOURS, Job, finish, parameters

__all__ = ["ACCEPTED", "WEEK_HOURS", "Job", "finish", "parameters"]
