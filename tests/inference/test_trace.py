"""What the log line and the record of a request say."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import msgspec
import pytest

from tollhouse.activity.rules import outcome
from tollhouse.activity.types import FailureSource, RequestOutcome, RequestRecord
from tollhouse.base.errors import GatewayError, InvalidRequest, Kind
from tollhouse.base.ids import AdminKeyId, OrganizationId, ProjectId, ProjectKeyId, RequestId
from tollhouse.base.money import PicoUsd
from tollhouse.base.trace_context import TraceContext
from tollhouse.base.traffic import UNLIMITED_EVERYWHERE
from tollhouse.inference.errors import AnswerExpired
from tollhouse.inference.trace import RequestTrace, failure_source
from tollhouse.keys.types import Admin, Caller, Customer
from tollhouse.ledger.types import Charge

REQUEST_ID = RequestId(UUID(int=1))
STARTED_AT = datetime(2026, 1, 1, tzinfo=UTC)
SECRET = "thp_" + "Z9" * 24 + "q"
CUSTOMER = Customer(
    organization_id=OrganizationId(UUID(int=2)),
    project_id=ProjectId(UUID(int=3)),
    key_id=ProjectKeyId(UUID(int=4)),
    allowed_models=None,
    granted_checks=frozenset(),
    policy_version=1,
    catalog_version=1,
    limits=UNLIMITED_EVERYWHERE,
)
ADMIN = Admin(
    organization_id=OrganizationId(UUID(int=2)),
    key_id=AdminKeyId(UUID(int=5)),
    permissions=frozenset(),
    holds_all=True,
    expires_at=None,
)
CHARGE = Charge(
    input_tokens=12,
    cached_input_tokens=3,
    output_tokens=45,
    input_pico_usd=PicoUsd(250_000),
    output_pico_usd=PicoUsd(1_000_000),
)


def trace_of(caller: Caller | None, **facts: Any) -> tuple[RequestTrace, list[RequestRecord]]:  # noqa: ANN401 - any field
    """A trace, and the records that it has written so far."""
    records: list[RequestRecord] = []
    trace = RequestTrace(
        request_id=REQUEST_ID,
        method="POST",
        operation="createChatCompletion",
        started_at=STARTED_AT,
        started_seconds=10.0,
        caller=caller,
        record=records.append,
        **facts,
    )
    return trace, records


def line_of(trace: RequestTrace) -> dict[str, Any]:
    return msgspec.to_builtins(trace.log_line(status=200, duration_ms=640.756789))


def test_the_line_and_the_record_say_what_was_used_and_where_the_time_went() -> None:
    trace, records = trace_of(
        CUSTOMER,
        model="example/model",
        backend="pool",
        replica="pool-1",
        queued_seconds=10.000123456,
        admitted_seconds=10.002,
        first_byte_seconds=10.1205,
    )
    trace.money_held()
    trace.charged(CHARGE, is_estimated=False)
    trace.answered(status=200, now_seconds=10.640756789)

    shared = {
        "request_id": str(REQUEST_ID),
        "operation": "createChatCompletion",
        "status": 200,
        "organization_id": str(CUSTOMER.organization_id),
        "model": "example/model",
        "backend": "pool",
        "replica": "pool-1",
        "input_tokens": 12,
        "cached_input_tokens": 3,
        "output_tokens": 45,
        "cost_pico_usd": 1_250_000,
    }
    assert line_of(trace) == {
        **shared,
        "timestamp": "2026-01-01T00:00:00Z",
        "method": "POST",
        "key_id": str(CUSTOMER.key_id),
        "duration_ms": 640.757,
        "queue_ms": 0.123,
        "admission_ms": 1.877,
        "first_byte_ms": 120.5,
    }
    (record,) = records
    stored = msgspec.to_builtins(record)
    assert shared.items() <= stored.items()
    assert stored["project_id"] == str(CUSTOMER.project_id)
    assert stored["api_key_id"] == str(CUSTOMER.key_id)
    assert stored["total_ms"] == pytest.approx(640.756789)
    assert stored["queue_ms"] == pytest.approx(0.123456, abs=1e-6)
    assert stored["failed_by"] is None


def test_the_line_names_the_span_of_a_traced_request() -> None:
    context = TraceContext(trace_id=0xABC, span_id=0xDEF)
    line = line_of(trace_of(CUSTOMER, context=context)[0])

    assert (line["trace_id"], line["span_id"]) == (f"{0xABC:032x}", f"{0xDEF:016x}")


def test_the_line_of_an_open_cost_has_none_and_the_record_waits() -> None:
    trace, records = trace_of(CUSTOMER)
    trace.money_held()
    trace.answered(status=499, now_seconds=11.0)

    assert "cost_pico_usd" not in line_of(trace)
    assert records == []

    trace.charged(CHARGE, is_estimated=True)

    (record,) = records
    assert (record.status, record.cost_pico_usd, record.is_estimated) == (499, 1_250_000, True)


def test_a_refused_customer_has_a_cost_of_zero() -> None:
    trace, records = trace_of(CUSTOMER)
    trace.answered(status=404, now_seconds=11.0)

    assert line_of(trace)["cost_pico_usd"] == 0
    assert records[0].cost_pico_usd == 0


@pytest.mark.parametrize("caller", [ADMIN, None])
def test_other_callers_have_a_line_without_a_cost_and_no_record(caller: Caller | None) -> None:
    trace, records = trace_of(caller)
    trace.answered(status=200, now_seconds=11.0)

    line = line_of(trace)
    assert "cost_pico_usd" not in line
    assert line.get("key_id") == (None if caller is None else str(caller.key_id))
    assert records == []


def test_the_code_of_a_failure_in_the_stream_is_in_both() -> None:
    trace, records = trace_of(CUSTOMER)
    trace.failure = AnswerExpired()
    trace.answered(status=200, now_seconds=11.0)

    assert line_of(trace)["code"] == AnswerExpired.code
    assert records[0].error_code == AnswerExpired.code
    assert records[0].failed_by is FailureSource.GATEWAY


def test_the_record_names_the_parameter_that_was_wrong() -> None:
    trace, records = trace_of(CUSTOMER)
    trace.failure = InvalidRequest("invalid_type", "Not a number.", param="temperature")
    trace.answered(status=400, now_seconds=11.0)

    assert (records[0].error_code, records[0].error_param) == ("invalid_type", "temperature")


@pytest.mark.parametrize("kind", [kind for kind in Kind if kind is not Kind.BACKEND_FAILED])
def test_sums_and_records_agree_on_who_failed(kind: Kind) -> None:
    # A class of its own would be one of the gateway's failures, with a page and a remedy.
    failure = cast("GatewayError", SimpleNamespace(kind=kind, code="any"))

    is_servers = failure_source(failure) is not FailureSource.CALLER

    assert (outcome(kind.value, failure.code) is RequestOutcome.FAILED) is is_servers


def test_a_key_that_a_caller_sent_as_a_name_is_redacted() -> None:
    trace, _ = trace_of(CUSTOMER, model=f"a\n{SECRET}", client_request_id="x" * 110 + SECRET)

    line = line_of(trace)

    assert line["model"] == "a?thp_[redacted]"
    assert line["client_request_id"] == "x" * 110 + "thp_[redacted]"
