"""What the scripts in ``jobs/`` share. They import nothing else of rivermouth."""

from rivermouth.job.job import WEEK_HOURS, Job, finish, parameters

__all__ = ["WEEK_HOURS", "Job", "finish", "parameters"]
