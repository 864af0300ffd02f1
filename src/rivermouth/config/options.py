"""Options of the Kafka client, as the file gives them."""

from __future__ import annotations

from collections.abc import Mapping

from rivermouth.config.logins import BELONGS_TO_LOGIN, login_faults
from rivermouth.config.problems import Fault, Kind, Refused, checked
from rivermouth.config.secret import Secret, sensitive
from rivermouth.config.values import KAFKA_NOT_YOURS, check_servers, not_yours


def read_kafka_options(value: object) -> Mapping[str, str | Secret]:
    """The section ``kafka``; values under sensitive names are ``Secret``. Raises ``Refused``."""
    if not isinstance(value, Mapping):
        raise Refused(Fault(Kind.WRONG_TYPE, "{path} must be a mapping, not {value}"))
    faults = [*not_yours(value, KAFKA_NOT_YOURS)]
    options: dict[str, str | Secret] = {}
    for name, text in value.items():
        if not isinstance(text, (str, Secret)):
            faults.append(Fault(Kind.WRONG_TYPE, "{path} must be text, not {value}", path=(name,)))
        elif name.startswith("kafka."):
            message, fix = "{path} has the prefix kafka. twice", "remove it from the option"
            faults.append(Fault(Kind.UNKNOWN_KEY, message, path=(name,), fix=fix, at_key=True))
        hide = isinstance(text, str) and sensitive(name)
        options[name] = Secret(str(text)) if hide else text
    servers = value.get("bootstrap.servers")
    if isinstance(servers, str):
        faults += check_servers(servers)
    elif isinstance(servers, Secret):
        message = "{path} cannot be a secret: messages name the servers"
        faults.append(Fault(Kind.BAD_VALUE, message, path=("bootstrap.servers",)))
    elif "bootstrap.servers" not in value:
        fix = "add bootstrap.servers: host:port"
        message = "{path} lacks bootstrap.servers"
        faults.append(Fault(Kind.MISSING_KEY, message, fix=fix, at_key=True))
    sound = [name for name, text in value.items() if isinstance(text, (str, Secret))]
    faults += login_faults({name: options[name] for name in sound})
    return checked(options, faults)


def check_source_options(value: Mapping[str, str]) -> Mapping[str, str]:
    """Options of one source: ``kafka.…``, but no server, login or secret. Raises ``Refused``."""
    faults = [*not_yours(value, KAFKA_NOT_YOURS, "kafka.")]
    for name in value:
        if name == "kafka.bootstrap.servers" or sensitive(name):
            message = "{path} belongs in the section kafka: at the top of the file"
            fix = "one file reads one cluster, and its secrets belong there"
            faults.append(Fault(Kind.NOT_YOURS, message, path=(name,), fix=fix, at_key=True))
        elif BELONGS_TO_LOGIN.fullmatch(name.removeprefix("kafka.")):
            message = "{path} belongs in the section kafka: at the top of the file"
            fix = "both Kafka clients log in with it, and here only Spark would get it"
            faults.append(Fault(Kind.LOGIN, message, path=(name,), fix=fix, at_key=True))
        elif not name.startswith("kafka."):
            message = "{path} does not start with kafka."
            faults.append(Fault(Kind.UNKNOWN_KEY, message, path=(name,), at_key=True))
    return checked(value, faults)
