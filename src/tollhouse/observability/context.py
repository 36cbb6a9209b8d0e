"""The facts about one request that its log line and its span have."""

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from tollhouse.base.ids import AdminKeyId, OrganizationId, ProjectKeyId, RequestId
from tollhouse.base.money import PicoUsd


@dataclass(kw_only=True, slots=True)
class RequestContext:
    """The facts about one request, set step by step. Only inference sets `model` and later fields.

    It is passed as an argument, because a context variable could outlive its request.
    """

    request_id: RequestId
    method: str
    operation: str | None = None
    organization_id: OrganizationId | None = None
    key_id: ProjectKeyId | AdminKeyId | None = None
    error_code: str | None = None
    client_request_id: str | None = None
    retry_count: int | None = None
    model: str | None = None
    backend: str | None = None
    replica: str | None = None
    input_tokens: int | None = None
    cached_input_tokens: int | None = None
    output_tokens: int | None = None
    cost_pico_usd: PicoUsd | None = None
    queue_ms: float | None = None
    admission_ms: float | None = None
    judging_ms: float | None = None
    first_byte_ms: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """A finished span without content. The request's ID is also the ID of the trace."""

    request_id: UUID
    name: str
    start_ns: int
    end_ns: int
    attributes: Mapping[str, str | int | float | bool]
    is_failure: bool
