"""Ports on the loopback address."""

from __future__ import annotations

import random
import socket

__all__ = ["HOST", "accepts", "free_port", "is_free"]

HOST = "127.0.0.1"
# Below the range from which systems take the local ports of outgoing connections, so that a
# port stays free between two starts.
_PORTS = range(20000, 32000)


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def free_port(besides: int = 0) -> int:
    while (port := random.choice(_PORTS)) == besides or not is_free(port):
        pass
    return port


def accepts(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((HOST, port)) == 0
