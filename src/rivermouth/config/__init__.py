"""Configuration: from a YAML file to frozen values, or to every problem of it at once.

    text -> reader (located tree, variables) -> shape (the file's words to ours)
         -> models (one setting at a time) and rules (settings together) -> Config

This room is pure: it reads the one file it is given and nothing else.
"""

from rivermouth.config.catalog import Catalog
from rivermouth.config.columns import Column
from rivermouth.config.loader import load
from rivermouth.config.models import Config, Kafka, Pipeline, Source, Target
from rivermouth.config.names import OFFSETS_TABLE, TableName
from rivermouth.config.problems import codes
from rivermouth.config.schema import json_schema
from rivermouth.config.secret import Secret, SecretName, Secrets, unresolved
from rivermouth.config.start import Start
from rivermouth.config.values import OnDataLoss

__all__ = [
    "OFFSETS_TABLE",
    "Catalog",
    "Column",
    "Config",
    "Kafka",
    "OnDataLoss",
    "Pipeline",
    "Secret",
    "SecretName",
    "Secrets",
    "Source",
    "Start",
    "TableName",
    "Target",
    "codes",
    "json_schema",
    "load",
    "unresolved",
]
