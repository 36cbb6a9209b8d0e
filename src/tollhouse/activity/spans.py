"""Conversion of requests into spans of OpenTelemetry's conventions for generative AI.

The names of attributes are those of github.com/open-telemetry/semantic-conventions-genai.
Attributes that it does not define begin with `tollhouse.`.
"""

from datetime import UTC, datetime, timedelta
from typing import Final

from tollhouse.activity.rules import known_model
from tollhouse.activity.types import FAILED_STATUS_MIN, RequestRecord
from tollhouse.base.trace_context import new_trace
from tollhouse.observability.log import redact
from tollhouse.observability.span import Span

OPERATIONS: Final = {
    "createChatCompletion": "chat",
    "createResponse": "chat",
    "createMessage": "chat",
    "countTokens": "count_tokens",
    "countMessageTokens": "count_tokens",
}
"""The names of inference operations. Other operations, such as listing models, have no span."""
NO_PROVIDER: Final = "tollhouse"
"""The provider of a request that reached no backend: the convention requires a name."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NS_PER_US: Final = 1_000
_NS_PER_MS: Final = 1_000_000
_MS_PER_SECOND: Final = 1_000


def span_of(record: RequestRecord) -> Span | None:
    """Return the span of an inference request, or None for other requests."""
    operation = OPERATIONS.get(record.operation)
    if operation is None:
        return None
    context = record.trace_context or new_trace(record.request_id)
    model = None if known_model(record) is None else _requested_model(record)
    start_ns = (record.started_at - _EPOCH) // timedelta(microseconds=1) * _NS_PER_US
    return Span(
        context=context,
        name=operation if model is None else f"{operation} {model}",
        start_ns=start_ns,
        end_ns=start_ns + int(record.total_ms * _NS_PER_MS),
        attributes={
            name: value
            for name, value in _attributes(record, operation).items()
            if value is not None
        },
        is_failure=_error_type(record) is not None,
    )


def _attributes(
    record: RequestRecord, operation: str
) -> dict[str, str | int | float | bool | None]:
    return {
        "gen_ai.operation.name": operation,
        "gen_ai.provider.name": record.backend or NO_PROVIDER,
        "gen_ai.request.model": _requested_model(record),
        "gen_ai.request.stream": True if record.is_stream else None,
        "gen_ai.response.model": _answering_model(record),
        "gen_ai.response.time_to_first_chunk": _first_chunk_seconds(record),
        "gen_ai.usage.input_tokens": _input_tokens(record),
        "gen_ai.usage.cache_read.input_tokens": record.cached_input_tokens,
        "gen_ai.usage.output_tokens": record.output_tokens,
        "http.response.status_code": record.status,
        "error.type": _error_type(record),
        "tollhouse.request_id": str(record.request_id),
        "tollhouse.organization_id": str(record.organization_id),
        "tollhouse.project_id": str(record.project_id),
        "tollhouse.api_key_id": str(record.api_key_id),
        "tollhouse.replica": record.replica,
        "tollhouse.failed_by": None if record.failed_by is None else record.failed_by.value,
        "tollhouse.cost_pico_usd": record.cost_pico_usd,
        "tollhouse.usage_estimated": True if record.is_estimated else None,
        "tollhouse.queue_ms": record.queue_ms,
        "tollhouse.admission_ms": record.admission_ms,
        "tollhouse.judging_ms": record.judging_ms,
    }


def _requested_model(record: RequestRecord) -> str | None:
    """Return the model that the caller named, which another may have answered for."""
    name = record.requested_model or record.model
    return None if name is None else redact(name)


def _answering_model(record: RequestRecord) -> str | None:
    """Return the model that answered, or None if the caller received no answer."""
    if record.model is None or record.status >= FAILED_STATUS_MIN:
        return None
    return redact(record.model)


def _input_tokens(record: RequestRecord) -> int | None:
    """Return the input tokens with the cached ones, which records count separately."""
    if record.input_tokens is None:
        return None
    return record.input_tokens + (record.cached_input_tokens or 0)


def _first_chunk_seconds(record: RequestRecord) -> float | None:
    if not record.is_stream or record.first_byte_ms is None:
        return None
    return record.first_byte_ms / _MS_PER_SECOND


def _error_type(record: RequestRecord) -> str | None:
    """Return the error code, also that of a stream that began with status 200 and then failed."""
    if record.status < FAILED_STATUS_MIN:
        return record.error_code
    return record.error_code or str(record.status)
