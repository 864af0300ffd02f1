"""Data files of a Delta table, written by the tasks of a batch and committed by the driver.

``statistics``, ``file`` and ``task`` run in Spark's Python workers. ``known`` decides from what a
table's log says whether it is written in this way, ``way`` from its pipeline. ``table`` commits.
"""
