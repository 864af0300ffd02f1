"""A record with header names that Python's client does not send: any bytes, through librdkafka."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import c_char_p, c_int, c_size_t, c_ssize_t, c_void_p
from pathlib import Path

import confluent_kafka

_TOPIC, _COPY, _VALUE, _HEADERS, _END = 1, 2, 4, 10, 0
_FLAGS = 7


def produce(servers: str, topic: str, value: bytes, names: Sequence[bytes]) -> None:
    """One record with headers of these names, each with the value ``v``."""
    [library] = Path(confluent_kafka.__file__).parent.parent.glob("confluent_kafka.libs/librdk*")
    rd = ctypes.CDLL(str(library))
    for made in (rd.rd_kafka_conf_new, rd.rd_kafka_new, rd.rd_kafka_headers_new):
        made.restype = c_void_p
    error = ctypes.create_string_buffer(512)
    conf = c_void_p(rd.rd_kafka_conf_new())
    options = {b"bootstrap.servers": servers.encode(), b"log_level": b"2"}
    for option, given in options.items():
        assert rd.rd_kafka_conf_set(conf, c_char_p(option), c_char_p(given), error, 512) == 0
    client = c_void_p(rd.rd_kafka_new(c_int(0), conf, error, c_size_t(512)))
    headers = c_void_p(rd.rd_kafka_headers_new(c_size_t(len(names))))
    for name in names:
        size = c_ssize_t(len(name))
        assert rd.rd_kafka_header_add(headers, c_char_p(name), size, b"v", c_ssize_t(1)) == 0
    record = (c_int(_TOPIC), c_char_p(topic.encode()), c_int(_FLAGS), c_int(_COPY))
    content = (c_int(_VALUE), c_char_p(value), c_size_t(len(value)), c_int(_HEADERS), headers)
    assert rd.rd_kafka_producev(client, *record, *content, c_int(_END)) == 0
    assert rd.rd_kafka_flush(client, c_int(30_000)) == 0
    rd.rd_kafka_destroy(client)
