"""The page about all pipelines: what it tells, how it is written, and how it is served."""
