"""How to reach the cluster: the section ``kafka`` of the file."""

from __future__ import annotations

from typing import Annotated

from rivermouth.config.secret import Secret, SecretName, Secrets
from rivermouth.config.value_types import KafkaOptions
from rivermouth.config.written import InPlace, Model


class Kafka(Model):
    """Options of the Kafka client, word for word and without a prefix."""

    options: Annotated[KafkaOptions, InPlace()]
    """Values under sensitive names, and those that refer to secrets, are ``Secret``."""

    @property
    def bootstrap_servers(self) -> str:
        return str(self.options["bootstrap.servers"])

    @property
    def secret_names(self) -> list[SecretName]:
        """The secrets that the options refer to, each once, in order."""
        held = (each for each in self.options.values() if isinstance(each, Secret))
        return sorted({name for each in held for name in each.names})

    def revealed(self, secrets: Secrets) -> dict[str, str]:
        """The options with their secrets as plain text: only for the moment of use.

        ``secrets`` reads each secret that the file names; what it raises is raised here too.
        """
        return {
            name: value.reveal(secrets) if isinstance(value, Secret) else value
            for name, value in self.options.items()
        }
