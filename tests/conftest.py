"""Shared by all tests: the broker fixture that users get too, and how examples are drawn."""

from hypothesis import settings

pytest_plugins = ["rivermouth.testing"]

# A busy machine makes any example slow; how fast things are is what benchmarks tell. And what a
# commit is told must come of the commit: the same examples each time; campaigns draw new ones.
settings.register_profile("steady", deadline=None, derandomize=True)
settings.load_profile("steady")
