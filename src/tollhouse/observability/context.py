"""What is known of one request, filled in step by step by the edge and printed by its log line."""

from dataclasses import dataclass

from tollhouse.base.ids import AdminKeyId, OrganizationId, ProjectKeyId, RequestId


@dataclass(kw_only=True, slots=True)
class RequestContext:
    """Passed down by hand: a context variable would outlive its request in a pooled task."""

    request_id: RequestId
    method: str
    operation: str | None = None
    organization_id: OrganizationId | None = None
    key_id: ProjectKeyId | AdminKeyId | None = None
    error_code: str | None = None
    client_request_id: str | None = None
    retry_count: int | None = None
