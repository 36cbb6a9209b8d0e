"""The wire types of the audit log, which has one entry for each change of a resource."""

from typing import ClassVar, Literal, TypeAlias

from msgspec import Meta, Struct

from tollhouse.contract.listing import ListPage
from tollhouse.contract.origins import extension


class AuditActor(Struct, frozen=True, kw_only=True):
    """Who made the change: an Admin key, a person, or the operator, who has no ID.

    `name` is what the OpenID provider called the person then; null for the others.
    """

    mark: ClassVar[Meta] = extension("OQ-158")

    type: Literal["admin_api_key", "operator", "person"]
    id: str | None
    name: str | None = None


class AuditResource(Struct, frozen=True, kw_only=True):
    """The resource that was changed."""

    mark: ClassVar[Meta] = extension("OQ-158")

    type: str
    id: str


class DigestedValue(Struct, frozen=True, kw_only=True):
    """Replaces a value that is too long, or that may not be shown here.

    `sha256` is the digest of the value's JSON; `length` is the number of its characters.
    """

    mark: ClassVar[Meta] = extension("OQ-158")

    sha256: str
    length: int


AuditValue: TypeAlias = str | int | bool | list[str] | DigestedValue | None


class AuditChange(Struct, frozen=True, kw_only=True):
    """A changed field. `field` is a path with dots; an amount is a string of pico-dollars."""

    mark: ClassVar[Meta] = extension("OQ-158")

    field: str
    before: AuditValue
    after: AuditValue


class AuditEntry(Struct, frozen=True, kw_only=True):
    """One change of one resource. Two states with equal digests are equal."""

    mark: ClassVar[Meta] = extension("OQ-158")

    id: str
    object: Literal["organization.audit_entry"] = "organization.audit_entry"
    occurred_at: int
    actor: AuditActor
    action: str
    resource: AuditResource
    changes: list[AuditChange]
    digest_before: str | None
    digest_after: str | None
    request_id: str | None


class AuditList(ListPage, frozen=True, kw_only=True):
    """A page of the organization's audit log, newest first."""

    mark: ClassVar[Meta] = extension("OQ-158")

    data: list[AuditEntry]
