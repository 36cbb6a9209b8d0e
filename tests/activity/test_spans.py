"""Requests as spans: the names of the convention, the times of the request, and no content."""

from datetime import UTC, datetime

import msgspec
import pytest

from tests.activity.records import Customer
from tests.support.collector import Collector, collecting
from tests.support.gateway import running_gateway
from tollhouse.activity.recorder import RequestRecorder
from tollhouse.activity.spans import span_of
from tollhouse.activity.types import FailureSource
from tollhouse.base.trace_context import TraceContext, new_trace
from tollhouse.observability.span import Span
from tollhouse.settings import OtelSettings, Settings
from tollhouse.storage.database import Database

AT = datetime(2026, 5, 1, 12, 0, 0, 250_000, UTC)
AT_NS = 1_777_636_800_250_000_000


def span(customer: Customer, **facts: object) -> Span:
    found = span_of(customer.record(AT, **facts))
    assert found is not None
    return found


def test_a_streamed_chat_is_told_in_the_words_of_the_convention(customer: Customer) -> None:
    record = customer.record(AT, is_stream=True, judging_ms=7.0)

    found = span_of(record)

    assert found == Span(
        context=new_trace(record.request_id),
        name="chat example/model",
        start_ns=AT_NS,
        end_ns=AT_NS + 640_750_000,
        is_failure=False,
        attributes={
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "pool",
            "gen_ai.request.model": "example/model",
            "gen_ai.request.stream": True,
            "gen_ai.response.model": "example/model",
            "gen_ai.response.time_to_first_chunk": 0.1205,
            "gen_ai.usage.input_tokens": 15,
            "gen_ai.usage.cache_read.input_tokens": 3,
            "gen_ai.usage.output_tokens": 45,
            "http.response.status_code": 200,
            "tollhouse.request_id": str(record.request_id),
            "tollhouse.organization_id": str(customer.organization_id),
            "tollhouse.project_id": str(customer.project_id),
            "tollhouse.api_key_id": str(customer.api_key_id),
            "tollhouse.replica": "pool-1",
            "tollhouse.cost_pico_usd": 1_250_000,
            "tollhouse.queue_ms": 0.5,
            "tollhouse.admission_ms": 2.25,
            "tollhouse.judging_ms": 7.0,
        },
    )


def test_a_failure_says_its_code_and_who_failed(customer: Customer) -> None:
    found = span(customer, status=502, error_code="backend_error", failed_by=FailureSource.BACKEND)

    assert found.is_failure
    assert found.attributes["error.type"] == "backend_error"
    assert found.attributes["tollhouse.failed_by"] == "backend"
    assert "gen_ai.request.stream" not in found.attributes
    assert "gen_ai.response.time_to_first_chunk" not in found.attributes


def test_a_stream_that_failed_after_its_status_is_a_failure(customer: Customer) -> None:
    found = span(customer, is_stream=True, status=200, error_code="backend_error")

    assert found.is_failure
    assert found.attributes["error.type"] == "backend_error"


def test_a_fallback_is_the_model_of_the_answer_and_not_of_the_request(customer: Customer) -> None:
    found = span(customer, requested_model="example/alias")

    assert found.name == "chat example/alias"
    assert found.attributes["gen_ai.request.model"] == "example/alias"
    assert found.attributes["gen_ai.response.model"] == "example/model"


def test_a_request_of_a_trace_has_its_ids(customer: Customer) -> None:
    context = TraceContext(trace_id=1, span_id=2, parent_id=3)

    assert span(customer, trace_context=context).context == context


def test_a_caller_who_left_is_a_failure_without_a_code(customer: Customer) -> None:
    found = span(customer, status=499, failed_by=FailureSource.CALLER)

    assert found.attributes["error.type"] == "499"


def test_a_request_that_reached_no_backend_names_the_gateway(customer: Customer) -> None:
    found = span(customer, status=402, backend=None, replica=None, input_tokens=None)

    assert found.attributes["gen_ai.provider.name"] == "tollhouse"
    assert "gen_ai.usage.input_tokens" not in found.attributes


def test_names_of_spans_are_bounded_by_the_catalog(customer: Customer) -> None:
    """An unknown model is whatever a caller wrote, and names are what collectors group by."""
    found = span(customer, status=404, model="a guess")

    assert found.name == "chat"
    assert found.attributes["gen_ai.request.model"] == "a guess"


@pytest.mark.guarantee("T39")
def test_a_key_that_was_pasted_as_a_model_is_cut_out(customer: Customer) -> None:
    found = span(customer, model="thp_" + "Z9" * 24)

    assert "Z9Z9" not in repr(found)


@pytest.mark.parametrize(
    ("operation", "name"),
    [("createResponse", "chat"), ("countTokens", "count_tokens"), ("listModels", None)],
)
def test_only_inference_makes_spans(customer: Customer, operation: str, name: str | None) -> None:
    found = span_of(customer.record(AT, operation=operation))

    assert (None if found is None else found.attributes["gen_ai.operation.name"]) == name


async def test_a_recorder_exports_each_request_once_whatever_the_database_does(
    database: Database, customer: Customer
) -> None:
    exported: list[Span] = []
    recorder = RequestRecorder(database, waiting_records_max=2, export=exported.append)
    records = [customer.record(), customer.record(status=999), customer.record()]
    for record in records:
        recorder.record(record)

    await recorder.write()
    await recorder.write()

    # Of three that came at once two have room.
    assert [found.context for found in exported] == [new_trace(r.request_id) for r in records[1:]]


async def test_a_worker_sends_the_spans_of_its_requests_before_it_ends(
    settings: Settings, customer: Customer
) -> None:
    record = customer.record()
    with collecting(Collector()) as collector:
        chosen = msgspec.structs.replace(settings, otel=OtelSettings(endpoint=collector.url))
        async with running_gateway(chosen) as gateway:
            gateway.application._recorder.record(record)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - what handlers are given

    (found,) = collector.spans()
    assert found.trace_id.hex() == record.request_id.hex
    assert found.name == "chat example/model"


async def test_without_an_endpoint_nothing_is_exported(settings: Settings) -> None:
    async with running_gateway(settings) as gateway:
        assert gateway.application._traces is None  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - nothing else tells
