"""The wire types of the audit log, which has one entry for each change of a resource."""

from typing import ClassVar, Literal, TypeAlias

from msgspec import Meta, Struct

from tollhouse.contract.listing import ListPage
from tollhouse.contract.origins import extension


class AuditActor(Struct, frozen=True, kw_only=True):
    """Who made the change: an Admin key, a person, or the operator."""

    mark: ClassVar[Meta] = extension("OQ-158")

    type: Literal["admin_api_key", "operator", "person"]
    """The kind of caller."""
    id: str | None
    """The key or person, or null for the operator."""
    name: str | None = None
    """What the OpenID provider called the person then, or null."""


class AuditResource(Struct, frozen=True, kw_only=True):
    """The resource that was changed."""

    mark: ClassVar[Meta] = extension("OQ-158")

    type: str
    """The kind of resource."""
    id: str
    """The resource that was changed."""


class DigestedValue(Struct, frozen=True, kw_only=True):
    """Replaces a value that is too long, or that may not be shown here."""

    mark: ClassVar[Meta] = extension("OQ-158")

    sha256: str
    """The digest of the value's JSON, in hexadecimal."""
    length: int
    """The number of characters of the value's JSON."""


AuditValue: TypeAlias = str | int | bool | list[str] | DigestedValue | None


class AuditChange(Struct, frozen=True, kw_only=True):
    """A changed field."""

    mark: ClassVar[Meta] = extension("OQ-158")

    field: str
    """The field, as a path with dots."""
    before: AuditValue
    """The value before the change. An amount is a string of pico-dollars."""
    after: AuditValue
    """The value after the change."""


class AuditEntry(Struct, frozen=True, kw_only=True):
    """One change of one resource. Two states with equal digests are equal."""

    mark: ClassVar[Meta] = extension("OQ-158")

    id: str
    object: Literal["organization.audit_entry"] = "organization.audit_entry"
    occurred_at: int
    """When it was changed, in Unix seconds."""
    actor: AuditActor
    """The caller who changed it."""
    action: str
    """What was done, such as `policy.publish`."""
    resource: AuditResource
    """What was changed."""
    changes: list[AuditChange]
    """The fields that differ."""
    digest_before: str | None
    """The digest of the resource before, or null if it is new."""
    digest_after: str | None
    """The digest of the resource after, or null if it is gone."""
    request_id: str | None
    """The request that changed it, or null if none did."""


class AuditList(ListPage, frozen=True, kw_only=True):
    """A page of the organization's audit log, newest first."""

    mark: ClassVar[Meta] = extension("OQ-158")

    data: list[AuditEntry]
