"""A small server of tokens on this machine: what a broker and its clients ask for OAuth."""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from rivermouth.local.server import HOST
from tests.logins.certificates import Files

CLIENT, AUDIENCE = "ingest", "kafka"
_KEY = "key-1"


@dataclass
class Rules:
    """What the server goes by; a test may change it while it runs."""

    secret: str
    life_s: int = 3600
    closed: bool = False
    """Whether it refuses everybody."""
    away: bool = False
    """Whether it hangs up without an answer."""
    agents: list[str] = field(default_factory=list)
    """Who got a token: the names of the programs, in order."""


class TokenServer:
    """``with`` it, a server answers at ``endpoint`` and shows its public key at ``keys``."""

    def __init__(self, files: Files, authority: Path, secret: str) -> None:
        self.rules = Rules(secret)
        self._authority = authority
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self._server = ThreadingHTTPServer((HOST, 0), self._handler())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(files.certificate, files.key)
        self._server.socket = context.wrap_socket(
            self._server.socket, server_side=True, do_handshake_on_connect=False
        )
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def endpoint(self) -> str:
        return f"https://{HOST}:{self._server.server_port}/oauth2/token"

    @property
    def keys(self) -> str:
        return f"https://{HOST}:{self._server.server_port}/keys"

    def __enter__(self) -> TokenServer:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def token(self) -> str:
        """A token, asked for as a client does."""
        login = base64.b64encode(f"{CLIENT}:{self.rules.secret}".encode()).decode()
        headers = {"Authorization": f"Basic {login}", "User-Agent": "test"}
        request = urllib.request.Request(
            self.endpoint, b"grant_type=client_credentials", headers, method="POST"
        )
        context = ssl.create_default_context(cafile=str(self._authority))
        with urllib.request.urlopen(request, timeout=10, context=context) as answer:
            return str(json.load(answer)["access_token"])

    def _sign(self) -> str:
        now = int(time.time())
        claims = {
            "sub": CLIENT,
            "aud": AUDIENCE,
            "scope": "kafka",
            "iat": now,
            "exp": now + self.rules.life_s,
        }
        head = {"alg": "RS256", "typ": "JWT", "kid": _KEY}
        body = ".".join(_base64(json.dumps(each).encode()) for each in (head, claims))
        signed = self._key.sign(body.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{body}.{_base64(signed)}"

    def _public(self) -> dict[str, Any]:
        numbers = self._key.public_key().public_numbers()
        one = {"kty": "RSA", "use": "sig", "alg": "RS256", "kid": _KEY}
        parts = {"n": numbers.n, "e": numbers.e}
        shown = {
            name: _base64(number.to_bytes((number.bit_length() + 7) // 8, "big"))
            for name, number in parts.items()
        }
        return {"keys": [{**one, **shown}]}

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer(200, server._public())

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                if server.rules.away:
                    self.close_connection = True
                    return
                right = base64.b64encode(f"{CLIENT}:{server.rules.secret}".encode()).decode()
                if server.rules.closed or self.headers.get("Authorization") != f"Basic {right}":
                    self._answer(401, {"error": "invalid_client"})
                    return
                server.rules.agents.append(str(self.headers.get("User-Agent")))
                token = {"access_token": server._sign(), "token_type": "Bearer"}
                self._answer(200, {**token, "expires_in": server.rules.life_s})

            def _answer(self, status: int, value: Mapping[str, Any]) -> None:
                body = json.dumps(value).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                """Nothing: what it was asked is in the rules."""

        return Handler


def _base64(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")
