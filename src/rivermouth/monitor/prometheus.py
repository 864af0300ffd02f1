"""Figures for Prometheus: a page that it scrapes, or a file for its node exporter."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from rivermouth.errors import ConfigError, MissingPackage, SetupError
from rivermouth.monitor.metrics import BUCKETS_S, FIGURES, Figure, Kind, Labels

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

_ADDRESS = re.compile(r"(?P<host>[^:\s]*|\[[0-9a-fA-F:]+\]):(?P<port>\d{1,5})", re.ASCII)


class PrometheusMeter:
    """Keeps figures in the memory of this process. ``at_end`` is done when it is closed, ``port``
    is where it is served, if it is.

    Raises MissingPackage without the extra ``metrics``.
    """

    def __init__(self) -> None:
        self.at_end: Callable[[], object] = lambda: None
        self.port = 0
        try:
            import prometheus_client as client
        except ModuleNotFoundError as fault:
            raise MissingPackage(
                "metrics need prometheus-client, and it is not installed",
                remedy="pip install 'rivermouth[metrics]'",
            ) from fault
        cast(Callable[[], None], client.disable_created_metrics)()  # it has no types
        self.registry: CollectorRegistry = client.CollectorRegistry()
        makes: dict[Kind, Callable[..., Any]] = {
            Kind.COUNTER: client.Counter,
            Kind.GAUGE: client.Gauge,
            Kind.HISTOGRAM: client.Histogram,
        }
        self._kept = {
            each: makes[each.kind](
                f"rivermouth_{each.name}",
                each.what,
                each.labels,
                registry=self.registry,
                **({"buckets": BUCKETS_S} if each.kind is Kind.HISTOGRAM else {}),
            )
            for each in FIGURES
        }

    def put(self, figure: Figure, value: float, labels: Labels) -> None:
        """See ``Meter``."""
        kept = self._kept[figure].labels(**labels)
        if figure.kind is Kind.COUNTER:
            kept.inc(value)
        elif figure.kind is Kind.GAUGE:
            kept.set(value)
        else:
            kept.observe(value)

    def forget(self, figure: Figure, labels: Labels) -> None:
        """See ``Meter``."""
        values = tuple(labels[each] for each in figure.labels)
        if values in self._kept[figure]._metrics:
            self._kept[figure].remove(*values)

    def close(self) -> None:
        """See ``Meter``."""
        self.at_end()


def served(address: str) -> PrometheusMeter:
    """One whose figures are at ``http://HOST:PORT/metrics`` until it is closed.

    ``address`` is ``HOST:PORT``, or ``:PORT`` for all addresses of this machine. Raises ConfigError
    for another text, SetupError where the port cannot be had, and MissingPackage.
    """
    found = _ADDRESS.fullmatch(address)
    if found is None or int(found["port"]) > 65_535:
        raise ConfigError((f"--metrics {address}: write :PORT or HOST:PORT, as :9464",))
    meter = PrometheusMeter()
    from prometheus_client import start_http_server

    host = found["host"].strip("[]") or "0.0.0.0"
    try:
        server, thread = start_http_server(int(found["port"]), host, meter.registry)
    except OSError as fault:
        raise SetupError(
            "the figures cannot be served", where=f"--metrics {address}", found=str(fault)
        ) from fault

    def close() -> None:
        server.shutdown()
        server.server_close()
        thread.join()

    meter.port, meter.at_end = server.server_port, close
    return meter


def written(path: Path) -> PrometheusMeter:
    """One whose figures are written into a file when it is closed, whole or not at all."""
    meter = PrometheusMeter()
    from prometheus_client import write_to_textfile

    meter.at_end = partial(write_to_textfile, str(path), meter.registry)
    return meter
