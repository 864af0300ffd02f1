"""What goes in and out: a request, a response, an error as Databricks words it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

Resource = dict[str, Any]  # a stored thing, or a body: what JSON calls an object


@dataclass(frozen=True)
class Request:
    """``segments`` is the path taken apart at its slashes, and only then unquoted.

    A target that is no path is another host's, asked for as of a proxy; no route fits it.
    """

    method: str
    path: str
    query: Mapping[str, str]
    body: bytes
    segments: tuple[str, ...] = field(repr=False)

    @classmethod
    def parse(cls, method: str, target: str, body: bytes) -> Request:
        parts = urlsplit(target if target.startswith("/") else f"/proxy/{target}")
        segments = tuple(unquote(part) for part in parts.path.strip("/").split("/"))
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        return cls(method, unquote(parts.path), query, body, segments)

    def json(self) -> Resource:
        """The body, empty when there is none. Raises Refused for what is no JSON object."""
        try:
            found = json.loads(self.body or b"{}")
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise invalid("the body is not a JSON object")
        return found

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


@dataclass(frozen=True)
class Response:
    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, answer: Resource | bytes | None, status: int = 200) -> Response:
        """A handler's answer: an object becomes JSON, bytes stay, None is the empty object."""
        if isinstance(answer, bytes):
            return cls(status, answer, {"Content-Type": "application/octet-stream"})
        text = json.dumps({} if answer is None else answer)
        return cls(status, text.encode(), {"Content-Type": "application/json"})


class Refused(Exception):
    """A handler's no: the status and Databricks' own form of an error."""

    def __init__(self, status: int, code: str, message: str) -> None:
        self.status, self.code, self.message = status, code, message
        super().__init__(f"{status} {code}: {message}")

    def response(self) -> Response:
        return Response.of({"error_code": self.code, "message": self.message}, self.status)


def missing(what: str) -> Refused:
    return Refused(404, "RESOURCE_DOES_NOT_EXIST", f"{what} does not exist.")


def exists(what: str) -> Refused:
    return Refused(409, "RESOURCE_ALREADY_EXISTS", f"{what} already exists.")


def invalid(what: str) -> Refused:
    return Refused(400, "INVALID_PARAMETER_VALUE", what)
