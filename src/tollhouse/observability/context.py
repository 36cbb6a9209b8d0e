"""What is known of one request, filled in step by step by the edge and printed by its log line."""

from dataclasses import dataclass

from tollhouse.base.ids import AdminKeyId, OrganizationId, ProjectKeyId, RequestId
from tollhouse.base.money import PicoUsd


@dataclass(kw_only=True, slots=True)
class RequestContext:
    """Passed down by hand: a context variable would outlive its request in a pooled task.

    From `model` on, only inference knows it.
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
