"""Sessions, the tokens that they hand out, and what groups of people may do."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from tollhouse.base.ids import OrganizationId, SessionId


@dataclass(frozen=True, kw_only=True, slots=True)
class ConsoleSession:
    """One sign-in of one browser, by an Admin key or by a person.

    `owner_id` is the ID of the key or of the person. `key_digest` finds the key, and is None for a
    person; `person_name` is None for a key. A person may act in `organization_ids` as far as
    `groups` permit it there.
    """

    id: SessionId
    owner_id: UUID
    key_digest: bytes | None
    person_name: str | None
    groups: tuple[str, ...]
    organization_ids: tuple[OrganizationId, ...]
    created_at: datetime
    expires_at: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionToken:
    """What a bearer token of a session says. Its signature is valid, and it has not expired."""

    session_id: SessionId
    organization_id: OrganizationId


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupGrant:
    """What members of a group may do in an organization. `permissions` of None means all."""

    group: str
    organization_id: OrganizationId
    permissions: frozenset[str] | None


@dataclass(frozen=True, kw_only=True, slots=True)
class HeldPermissions:
    """What a person may do in one organization."""

    permissions: frozenset[str]
    holds_all: bool
