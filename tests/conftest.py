"""Shared by all tests: the broker fixture that users get too, and no time limits for examples."""

from hypothesis import settings

pytest_plugins = ["rivermouth.testing"]

# A busy machine makes any example slow; how fast things are is what benchmarks tell.
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")
