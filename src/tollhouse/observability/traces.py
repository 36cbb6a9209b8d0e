"""Spans on their way to a collector, by OpenTelemetry's own exporter and its thread.

Only a deployment that has `otel.endpoint` imports this: the packages are those of the extra `otel`.
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
from tollhouse.observability.spans import Span

WAITING_SPANS_MAX: Final = 2_048
BATCH_MAX: Final = 1_024
SEND_EVERY_MS: Final = 2_000
SEND_SECONDS_MAX: Final = 2.0
"""Times the batches that can wait, this is how long closing may take."""
_SPAN_ID_MASK: Final = 2**64 - 1


class Traces:
    """One per worker. When a collector is slow or away, the oldest spans are lost."""

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
        """Over HTTP, to a URL such as `http://127.0.0.1:4318/v1/traces`."""
        return cls(
            OTLPSpanExporter(endpoint, timeout=SEND_SECONDS_MAX, compression=Compression.Gzip)
        )

    def export(self, span: Span) -> None:
        """Hand a span to the exporter's thread."""
        context = SpanContext(
            trace_id=span.request_id.int,
            span_id=span.request_id.int & _SPAN_ID_MASK,
            is_remote=False,
            trace_flags=TraceFlags(TraceFlags.SAMPLED),
        )
        self._processor.on_end(
            ReadableSpan(
                span.name,
                context,
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
        """Send what waits, then stop. Blocks, so it belongs into a thread."""
        self._processor.shutdown()
