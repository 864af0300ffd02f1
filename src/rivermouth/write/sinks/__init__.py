"""Sinks: where rows are sent that go to no table."""
