"""A project of the user's own around a configuration: an asset bundle, a test, what CI runs."""
