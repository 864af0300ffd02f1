"""Shared by all tests: the broker fixture that users get too."""

pytest_plugins = ["rivermouth.testing"]
