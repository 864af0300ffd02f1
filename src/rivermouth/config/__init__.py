"""Configuration: from a YAML file to frozen values, or to all of its problems at once.

    text -> reader (located tree, variables) -> shape (the file's words to ours)
         -> models (one setting at a time) and rules (several settings) -> Config

A setting is one field of a model. Everything else about it is read from the field: see ``written``.
This folder reads the given file and nothing else. It lets Python find the functions that the file
names, see ``beside``.
"""

from rivermouth.config.columns import Column
from rivermouth.config.encoding import Timestamps
from rivermouth.config.loader import load
from rivermouth.config.models import Config, Kafka
from rivermouth.config.names import OFFSETS_TABLE, Catalog, TableName
from rivermouth.config.pipeline import Pipeline, Target
from rivermouth.config.problems import codes
from rivermouth.config.retry import Retry, pauses
from rivermouth.config.schema import json_schema
from rivermouth.config.secret import Secret, SecretName, Secrets, unresolved
from rivermouth.config.sinks import Delivery
from rivermouth.config.source import Source
from rivermouth.config.start import At, Start
from rivermouth.config.topics import Topics
from rivermouth.config.totals import KeyPart, Measure
from rivermouth.config.user_modules import found_in, functions, taken_from
from rivermouth.config.values import Commit, OnDataLoss, OnMissingTime

__all__ = [
    "OFFSETS_TABLE",
    "At",
    "Catalog",
    "Column",
    "Commit",
    "Config",
    "Delivery",
    "Kafka",
    "KeyPart",
    "Measure",
    "OnDataLoss",
    "OnMissingTime",
    "Pipeline",
    "Retry",
    "Secret",
    "SecretName",
    "Secrets",
    "Source",
    "Start",
    "TableName",
    "Target",
    "Timestamps",
    "Topics",
    "codes",
    "found_in",
    "functions",
    "json_schema",
    "load",
    "pauses",
    "taken_from",
    "unresolved",
]
