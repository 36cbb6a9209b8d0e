"""What is kept of a request."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from tollhouse.base.ids import OrganizationId, ProjectId, ProjectKeyId, RequestId
from tollhouse.base.money import PicoUsd


class Culprit(StrEnum):
    """Who failed, if anybody did."""

    CALLER = "caller"
    GATEWAY = "gateway"
    BACKEND = "backend"


@dataclass(frozen=True, kw_only=True, slots=True)
class RequestRecord:
    """One request of a customer, as it ended. Times are milliseconds; unknown ones are nothing.

    `status` is what the caller got; 499 where the caller left before the answer was complete.
    `cost_pico_usd` of nothing means that it is not known yet, never zero.
    """

    organization_id: OrganizationId
    request_id: RequestId
    project_id: ProjectId
    api_key_id: ProjectKeyId
    operation: str
    started_at: datetime
    status: int
    error_code: str | None = None
    culprit: Culprit | None = None
    model: str | None = None
    backend: str | None = None
    replica: str | None = None
    is_stream: bool = False
    input_tokens: int | None = None
    cached_input_tokens: int | None = None
    output_tokens: int | None = None
    cost_pico_usd: PicoUsd | None = None
    queue_ms: float | None = None
    admission_ms: float | None = None
    judging_ms: float | None = None
    first_byte_ms: float | None = None
    total_ms: float = 0.0
