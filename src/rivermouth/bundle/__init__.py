"""A new project around a configuration: an asset bundle, a test, a CI workflow."""
