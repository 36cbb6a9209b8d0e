"""Spans that leave the process: through the SDK, over HTTP, and only where they are wanted."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from tests.support.collector import Collector, collecting
from tollhouse import __version__
from tollhouse.base.ids import time_ordered_uuid
from tollhouse.base.trace_context import TraceContext, new_trace
from tollhouse.observability import traces
from tollhouse.observability.span import Span
from tollhouse.observability.traces import Traces
from tollhouse.observability.tracing import traces_to
from tollhouse.settings import InvalidSettings, OtelSettings

SOURCE = Path(__file__).parents[2] / "src"
START_NS = 1_777_636_800_250_000_000


def span(**facts: Any) -> Span:  # noqa: ANN401 - any field of a span
    known: dict[str, Any] = {
        "context": new_trace(time_ordered_uuid()),
        "name": "chat example/model",
        "start_ns": START_NS,
        "end_ns": START_NS + 5_000_000,
        "attributes": {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 15},
        "is_failure": False,
    }
    return Span(**(known | facts))


def test_a_span_keeps_its_times_and_is_found_by_its_request() -> None:
    exporter = InMemorySpanExporter()
    sender = Traces(exporter)
    sound, failed = span(), span(is_failure=True)

    sender.export(sound)
    sender.export(failed)
    sender.close()

    first, second = exporter.get_finished_spans()
    assert first.context is not None
    assert first.context.trace_id == sound.context.trace_id
    assert first.context.span_id == sound.context.span_id
    assert first.parent is None
    assert (first.start_time, first.end_time) == (sound.start_ns, sound.end_ns)
    assert (first.name, first.kind) == ("chat example/model", SpanKind.CLIENT)
    assert dict(first.attributes or {}) == sound.attributes
    assert dict(first.resource.attributes) == {
        "service.name": "tollhouse",
        "service.version": __version__,
    }
    assert first.status.status_code is StatusCode.UNSET
    assert second.status.status_code is StatusCode.ERROR


def test_a_span_of_a_callers_trace_is_below_a_remote_parent() -> None:
    exporter = InMemorySpanExporter()
    sender = Traces(exporter)
    sender.export(span(context=TraceContext(trace_id=1, span_id=2, parent_id=3)))
    sender.close()

    (found,) = exporter.get_finished_spans()
    assert found.context is not None
    assert found.parent is not None
    assert (found.context.trace_id, found.context.span_id) == (1, 2)
    assert (found.parent.trace_id, found.parent.span_id) == (1, 3)
    assert found.parent.is_remote


def test_closing_sends_what_waits_to_a_collector() -> None:
    sent = [span(attributes={"gen_ai.usage.input_tokens": n}) for n in range(1_500)]

    with collecting(Collector()) as collector:
        sender = traces_to(collector.url)
        assert sender is not None
        for one in sent:
            sender.export(one)
        sender.close()

    received = collector.spans()
    assert [found.trace_id.hex() for found in received] == [
        f"{one.context.trace_id:032x}" for one in sent
    ]
    assert received[7].attributes[0].key == "gen_ai.usage.input_tokens"
    assert received[7].attributes[0].value.int_value == 7
    assert (received[0].start_time_unix_nano, received[0].end_time_unix_nano) == (
        *(START_NS, START_NS + 5_000_000),
    )
    assert len(collector.received) >= 2, "in batches"


def test_a_collector_that_refuses_costs_spans_and_nothing_else(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with collecting(Collector(answer=400)) as collector:
        sender = Traces.to(collector.url)
        sender.export(span())
        sender.close()
        sender.export(span())

    assert len(collector.spans()) == 1
    assert any("Failed to export" in record.getMessage() for record in caplog.records)


def test_a_collector_that_is_away_holds_nobody_up() -> None:
    with collecting(Collector()) as collector:
        url = collector.url
    sender = Traces.to(url)

    for _ in range(3 * traces.WAITING_SPANS_MAX):
        sender.export(span())
    sender.close()


def test_without_an_endpoint_there_is_no_sender() -> None:
    assert traces_to(None) is None


SCRIPT = """
import sys
{without}
from tollhouse.app import Application
from tollhouse.observability.tracing import PackagesMissing, refuse_missing_packages
# redis-py imports OpenTelemetry by itself where it finds it; the exporter is ours alone.
print(sorted(name for name in sys.modules if name.startswith("opentelemetry.exporter")))
try:
    refuse_missing_packages("http://127.0.0.1:4318/v1/traces")
except PackagesMissing as error:
    print(error)
"""


def ran(without: str) -> list[str]:
    """The lines that an interpreter of its own prints."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(without=without)],
        cwd=SOURCE,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.splitlines()


def test_the_application_does_not_import_what_most_do_not_have() -> None:
    assert ran("") == ["[]"]


def test_without_the_extra_an_endpoint_is_refused_with_a_sentence() -> None:
    (_, sentence) = ran("sys.modules['opentelemetry'] = None")

    assert sentence == (
        "otel.endpoint: the packages that send spans are not installed. "
        "Install tollhouse[otel], or remove the setting."
    )


@pytest.mark.parametrize(
    "endpoint",
    [
        *("http://127.0.0.1:4318/v1/traces", "https://collector.example/v1/traces"),
        *("http://[::1]:4318/v1/traces", "http://collector:4318"),
    ],
)
def test_an_address_over_http_is_an_endpoint(endpoint: str) -> None:
    assert OtelSettings(endpoint=endpoint).endpoint == endpoint


@pytest.mark.parametrize(
    "endpoint",
    [
        *("", "collector:4318", "grpc://collector:4317", "http://user:secret@collector/v1/traces"),
        *("http://collector/v1/traces?key=secret", "http://collector/v1 traces", "file:///tmp/x"),
    ],
)
def test_anything_else_is_refused_without_being_repeated(endpoint: str) -> None:
    with pytest.raises(InvalidSettings) as refused:
        OtelSettings(endpoint=endpoint)

    assert "otel.endpoint" in str(refused.value)
    assert "secret" not in str(refused.value)
