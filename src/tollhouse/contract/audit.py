"""Who changed what: one entry for each change of an organization's resources."""

from typing import ClassVar, Literal

from msgspec import Meta, Struct

from tollhouse.contract.listing import ListPage
from tollhouse.contract.origins import extension


class AuditActor(Struct, frozen=True, kw_only=True):
    """An Admin key, or the operator at the command line, who has no ID."""

    mark: ClassVar[Meta] = extension("OQ-158")

    type: Literal["admin_api_key", "operator"]
    id: str | None


class AuditResource(Struct, frozen=True, kw_only=True):
    """What was changed."""

    mark: ClassVar[Meta] = extension("OQ-158")

    type: str
    id: str


class AuditEntry(Struct, frozen=True, kw_only=True):
    """The digests tell whether two states are the same, without showing either."""

    mark: ClassVar[Meta] = extension("OQ-158")

    id: str
    object: Literal["organization.audit_entry"] = "organization.audit_entry"
    occurred_at: int
    actor: AuditActor
    action: str
    resource: AuditResource
    digest_before: str | None
    digest_after: str | None
    request_id: str | None


class AuditList(ListPage, frozen=True, kw_only=True):
    """A page of the organization's audit trail."""

    mark: ClassVar[Meta] = extension("OQ-158")

    data: list[AuditEntry]
