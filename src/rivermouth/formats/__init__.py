"""Formats: raw Kafka rows to decoded rows (``decoded``). Lazy, no action, no Spark job.

``decoder`` is the same for all formats; each format has one module, named in the registry.
"""
