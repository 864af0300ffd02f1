"""Tables in folders of this machine: ``tests.lake`` has a class ``Lake`` of its own."""

from __future__ import annotations

from pathlib import Path

from rivermouth.config import Config
from rivermouth.storage.lake import Lake


def lake_in(folder: Path) -> Lake:
    """The lake in a folder."""
    return Lake.in_folder(folder)


def lake_of(config: Config) -> Lake:
    """The lake of a configuration."""
    return Lake.of(config)


def folder_of_config(config: Config) -> Path:
    """The folder of the tables of a configuration."""
    assert isinstance(config.warehouse, Path)
    return config.warehouse
