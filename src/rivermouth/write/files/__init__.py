"""Data files of a Delta table, written by the tasks of a batch and committed by the driver.

``statistics``, ``data_files`` and ``bad_records`` run in Spark's Python workers, ``table`` commits.
"""
