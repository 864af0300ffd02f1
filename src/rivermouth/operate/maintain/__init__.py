"""Maintenance: compaction, removal of old files, of orphans, and of what dead runs left."""
