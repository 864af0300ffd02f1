"""A broker of a test's own, which asks for passwords and rights, and may be frozen or cut."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import confluent_kafka.admin

from rivermouth.local.broker import Broker
from rivermouth.local.server import HOST, free_port

_ADMIN: Any = confluent_kafka.admin  # rights have no types
_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


@dataclass(frozen=True)
class Right:
    """What a user may do with something: the client's words for both, as TOPIC and READ."""

    user: str
    kind: str
    name: str
    operation: str


@dataclass(frozen=True)
class SecuredBroker:
    """``broker`` itself lets everybody in; at ``servers`` a password is asked for.

    The user ``owner`` may do everything, the others nothing that they were not given.
    """

    broker: Broker
    servers: str

    def login(
        self, user: str, password: str, *, jaas: bool = False, **more: str
    ) -> dict[str, dict[str, str]]:
        """The section ``kafka`` of a configuration, in either of its two ways."""
        plain = {"sasl.username": user, "sasl.password": password}
        login = {"sasl.jaas.config": f'{_LOGIN} username="{user}" password="{password}";'}
        section = {
            "bootstrap.servers": self.servers,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
        }
        return {"kafka": {**section, **(login if jaas else plain), **more}}

    @contextmanager
    def may_read(self, user: str, topic: str) -> Iterator[None]:
        """The right to read a topic, for as long as the block takes."""
        self.give(Right(user, "TOPIC", topic, "READ"))
        try:
            yield
        finally:
            self.take_rights(topic)

    def give(self, *rights: Right) -> None:
        """Give rights for good."""
        literal, allow = _ADMIN.ResourcePatternType.LITERAL, _ADMIN.AclPermissionType.ALLOW
        bindings = [
            _ADMIN.AclBinding(
                getattr(_ADMIN.ResourceType, each.kind),
                each.name,
                literal,
                f"User:{each.user}",
                "*",
                getattr(_ADMIN.AclOperation, each.operation),
                allow,
            )
            for each in rights
        ]
        admin = self._admin()  # it answers for as long as it is there
        for given in admin.create_acls(bindings).values():
            given.result(30)

    def take_rights(self, topic: str) -> None:
        """Take everybody's rights on a topic."""
        admin = self._admin()
        place = (_ADMIN.ResourceType.TOPIC, topic, _ADMIN.ResourcePatternType.LITERAL)
        anything = (None, None, _ADMIN.AclOperation.ANY, _ADMIN.AclPermissionType.ANY)
        [taken] = admin.delete_acls([_ADMIN.AclBindingFilter(*place, *anything)]).values()
        taken.result(30)

    def _admin(self) -> Any:
        return _ADMIN.AdminClient({"bootstrap.servers": self.broker.bootstrap_servers})


@contextmanager
def secured_broker(directory: Path, users: Mapping[str, str]) -> Iterator[SecuredBroker]:
    """A running one whose data lies in ``directory``; ``users`` maps names to passwords."""
    port = free_port()
    controller, secured = _two_more(port)
    listeners = {"PLAINTEXT": port, "CONTROLLER": controller, "SASL_PLAINTEXT": secured}
    known = " ".join(f'user_{name}="{password}"' for name, password in users.items())
    settings = {
        "listeners": ",".join(f"{name}://{HOST}:{at}" for name, at in listeners.items()),
        "listener.security.protocol.map": (
            "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT"
        ),
        "controller.quorum.voters": f"1@{HOST}:{controller}",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f"{_LOGIN} {known};",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS;User:owner",
    }
    with Broker(directory, port, settings=settings) as broker:
        yield SecuredBroker(broker, f"{HOST}:{secured}")


def _two_more(port: int) -> tuple[int, int]:
    found = {port}
    while len(found) < 3:
        found.add(free_port())
    first, second = sorted(found - {port})
    return first, second
