"""Sending spans to a collector with OpenTelemetry's exporter.

This is imported only if `otel.endpoint` is set, since it needs the packages of the extra `otel`.
"""

from typing import Final, Self

from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, TraceFlags
from opentelemetry.trace.status import Status, StatusCode

from tollhouse import __version__
from tollhouse.observability.span import Span

WAITING_SPANS_MAX: Final = 2_048
BATCH_MAX: Final = 1_024
SEND_EVERY_MS: Final = 2_000
SEND_SECONDS_MAX: Final = 2.0
"""The timeout of one batch. Closing takes at most this times the number of waiting batches."""


class Traces:
    """Sends spans of one worker. If the collector is slow or down, the oldest spans are lost."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._processor = BatchSpanProcessor(
            exporter,
            max_queue_size=WAITING_SPANS_MAX,
            schedule_delay_millis=SEND_EVERY_MS,
            max_export_batch_size=BATCH_MAX,
            export_timeout_millis=SEND_SECONDS_MAX * 1_000,
        )
        self._resource = Resource({"service.name": "tollhouse", "service.version": __version__})
        self._scope = InstrumentationScope("tollhouse", __version__)

    @classmethod
    def to(cls, endpoint: str) -> Self:
        """Return an exporter for a URL such as `http://127.0.0.1:4318/v1/traces`."""
        return cls(
            OTLPSpanExporter(endpoint, timeout=SEND_SECONDS_MAX, compression=Compression.Gzip)
        )

    def export(self, span: Span) -> None:
        """Queue a span for the exporter's thread."""
        parent_id = span.context.parent_id
        self._processor.on_end(
            ReadableSpan(
                span.name,
                _otel_context(span.context.trace_id, span.context.span_id),
                parent=(
                    None
                    if parent_id is None
                    else _otel_context(span.context.trace_id, parent_id, is_remote=True)
                ),
                resource=self._resource,
                attributes=span.attributes,
                kind=SpanKind.CLIENT,
                status=Status(StatusCode.ERROR if span.is_failure else StatusCode.UNSET),
                start_time=span.start_ns,
                end_time=span.end_ns,
                instrumentation_scope=self._scope,
            )
        )

    def close(self) -> None:
        """Send all queued spans and stop. Blocks, so call it in a thread."""
        self._processor.shutdown()


def _otel_context(trace_id: int, span_id: int, *, is_remote: bool = False) -> SpanContext:
    sampled = TraceFlags(TraceFlags.SAMPLED)
    return SpanContext(trace_id, span_id, is_remote=is_remote, trace_flags=sampled)
