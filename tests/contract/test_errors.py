"""The `type` of every status in both shapes, and the envelopes to the byte."""

import msgspec
import pytest

from tollhouse.base.errors import Kind
from tollhouse.contract.errors import (
    Envelope,
    ErrorBody,
    ErrorShape,
    MessagesEnvelope,
    error_type,
)

REQUEST_ID = "11111111-1111-4111-8111-111111111111"
TYPES = [
    (400, "invalid_request_error", "invalid_request_error"),
    (401, "invalid_request_error", "authentication_error"),
    (402, "insufficient_quota", "billing_error"),
    (403, "invalid_request_error", "permission_error"),
    (404, "invalid_request_error", "not_found_error"),
    (405, "invalid_request_error", "invalid_request_error"),
    (408, "invalid_request_error", "invalid_request_error"),
    (409, "invalid_request_error", "conflict_error"),
    (413, "invalid_request_error", "request_too_large"),
    (415, "invalid_request_error", "invalid_request_error"),
    (422, "invalid_request_error", "invalid_request_error"),
    (429, "rate_limit_error", "rate_limit_error"),
    (431, "invalid_request_error", "invalid_request_error"),
    (500, "server_error", "api_error"),
    (501, "invalid_request_error", "invalid_request_error"),
    (502, "server_error", "api_error"),
    (503, "service_unavailable_error", "overloaded_error"),
    (504, "server_error", "timeout_error"),
]
BODY = ErrorBody(
    code="array_below_min_length",
    message="Invalid 'messages': expected at least 1 item.",
    type="invalid_request_error",
    param="messages",
    request_id=REQUEST_ID,
    doc_url=None,
)
BODY_JSON = (
    b'{"code":"array_below_min_length","message":"Invalid \'messages\': expected at least 1 item.",'
    b'"type":"invalid_request_error","param":"messages",'
    b'"request_id":"11111111-1111-4111-8111-111111111111","doc_url":null}'
)


@pytest.mark.parametrize(("status", "openai", "messages"), TYPES)
def test_each_status_has_its_type_in_both_shapes(status: int, openai: str, messages: str) -> None:
    kind = Kind(status)

    assert error_type(kind, shape=ErrorShape.OPENAI, is_policy_failure=False) == openai
    assert error_type(kind, shape=ErrorShape.MESSAGES, is_policy_failure=False) == messages


def test_the_table_names_every_kind() -> None:
    assert [status for status, _, _ in TYPES] == [kind.value for kind in Kind]


@pytest.mark.parametrize("shape", ErrorShape)
@pytest.mark.parametrize("kind", [Kind.DENIED, Kind.UNAVAILABLE, Kind.CONFLICT])
def test_a_policy_failure_is_a_policy_error_everywhere(kind: Kind, shape: ErrorShape) -> None:
    assert error_type(kind, shape=shape, is_policy_failure=True) == "policy_error"


def test_the_envelope_has_all_its_fields() -> None:
    assert msgspec.json.encode(Envelope(error=BODY)) == b'{"error":' + BODY_JSON + b"}"


def test_the_envelope_of_messages_is_wrapped_and_repeats_the_request_id() -> None:
    envelope = MessagesEnvelope(error=BODY, request_id=REQUEST_ID)

    assert msgspec.json.encode(envelope) == (
        b'{"type":"error","error":' + BODY_JSON + b',"request_id":"' + REQUEST_ID.encode() + b'"}'
    )
