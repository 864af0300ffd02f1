"""What the scripts in ``jobs/`` share. They import it from here."""

from rivermouth.job.job import Job, finish, parameters

__all__ = ["Job", "finish", "parameters"]
