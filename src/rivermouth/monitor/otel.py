"""Figures by OpenTelemetry's own exporter, which its environment variables configure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rivermouth import __version__
from rivermouth.errors import MissingPackage
from rivermouth.monitor.metrics import BUCKETS_S, FIGURES, Figure, Kind, Labels


class OtelMeter:
    """Sends figures by OTLP over HTTP, to ``OTEL_EXPORTER_OTLP_ENDPOINT``, every
    ``OTEL_METRIC_EXPORT_INTERVAL`` ms and when it is closed.

    Raises MissingPackage without the extra ``otel``.
    """

    def __init__(self) -> None:
        try:
            from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
            from opentelemetry.sdk.metrics import MeterProvider
            from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
            from opentelemetry.sdk.resources import Resource
        except ModuleNotFoundError as fault:
            raise MissingPackage(
                "--otel needs OpenTelemetry's exporter, and it is not installed",
                remedy="pip install 'rivermouth[otel]'",
            ) from fault
        resource = Resource.create({"service.name": "rivermouth", "service.version": __version__})
        reader = PeriodicExportingMetricReader(OTLPMetricExporter())
        self._provider = MeterProvider([reader], resource)
        meter = self._provider.get_meter("rivermouth", __version__)
        makes: dict[Kind, Callable[..., Any]] = {
            Kind.COUNTER: meter.create_counter,
            Kind.GAUGE: meter.create_gauge,
            Kind.HISTOGRAM: meter.create_histogram,
        }
        self._kept = {
            each: makes[each.kind](
                f"rivermouth.{each.name}",
                description=each.what,
                **(
                    {"explicit_bucket_boundaries_advisory": BUCKETS_S}
                    if each.kind is Kind.HISTOGRAM
                    else {}
                ),
            )
            for each in FIGURES
        }

    def put(self, figure: Figure, value: float, labels: Labels) -> None:
        """See ``Meter``."""
        kept = self._kept[figure]
        if figure.kind is Kind.COUNTER:
            kept.add(value, labels)
        elif figure.kind is Kind.GAUGE:
            kept.set(value, labels)
        else:
            kept.record(value, labels)

    def forget(self, figure: Figure, labels: Labels) -> None:
        """See ``Meter``: OpenTelemetry sends a gauge only after somebody set it."""

    def close(self) -> None:
        """See ``Meter``."""
        self._provider.shutdown()
