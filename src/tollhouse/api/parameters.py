"""IDs that were sent: text that cannot be an ID is answered like an unknown one."""

import re
from collections.abc import Iterable
from typing import Any
from uuid import UUID

from msgspec import UnsetType

from tollhouse.api.call import Call
from tollhouse.base.errors import UnknownCursor
from tollhouse.base.ids import (
    AdminKeyId,
    PolicyId,
    ProjectId,
    ProjectKeyId,
    parse_policy_id,
    parse_uuid,
    policy_version_id_text,
)
from tollhouse.contract.bounds import REVISION_MAX
from tollhouse.keys.errors import KeyNotFound
from tollhouse.policies.errors import PolicyNotFound, PolicyVersionNotFound, TargetNotFound
from tollhouse.projects.errors import ProjectNotFound

_VERSION = re.compile(r"[1-9][0-9]{0,9}")


def project_id(call: Call[Any, Any, Any]) -> ProjectId:
    """The project that the path names."""
    parsed = parse_uuid(call.path["project_id"])
    if parsed is None:
        raise ProjectNotFound
    return ProjectId(parsed)


def project_key_id(call: Call[Any, Any, Any]) -> ProjectKeyId:
    """The project key that the path names."""
    return ProjectKeyId(_key_id(call))


def admin_key_id(call: Call[Any, Any, Any]) -> AdminKeyId:
    """The Admin key that the path names."""
    return AdminKeyId(_key_id(call))


def policy_id(call: Call[Any, Any, Any]) -> PolicyId:
    """The policy that the path names."""
    parsed = parse_policy_id(call.path["policy_id"])
    if parsed is None:
        raise PolicyNotFound
    return parsed


def version(call: Call[Any, Any, Any]) -> int:
    """The policy's version that the path names."""
    number = _version(call.path["version"])
    if number is None:
        raise PolicyVersionNotFound
    return number


def project_ids(sent: Iterable[str]) -> tuple[ProjectId, ...]:
    """The projects that a policy's body names."""
    parsed = [(text, parse_uuid(text)) for text in sent]
    if unknown := [text for text, one in parsed if one is None]:
        raise TargetNotFound(unknown)
    return tuple(ProjectId(one) for _, one in parsed if one is not None)


def cursor(after: str | UnsetType) -> UUID | None:
    """Where the page before ended; nothing on the first page."""
    if isinstance(after, UnsetType):
        return None
    parsed = parse_uuid(after)
    if parsed is None:
        raise UnknownCursor
    return parsed


def policy_cursor(after: str | UnsetType) -> PolicyId | None:
    """The last policy of the page before."""
    if isinstance(after, UnsetType):
        return None
    parsed = parse_policy_id(after)
    if parsed is None:
        raise UnknownCursor
    return parsed


def version_cursor(after: str | UnsetType, of: PolicyId) -> int | None:
    """The last version of the page before; another policy's is no cursor here."""
    if isinstance(after, UnsetType):
        return None
    number = _version(after.rpartition("_v")[2])
    if number is None or policy_version_id_text(of, number) != after:
        raise UnknownCursor
    return number


def _version(text: str) -> int | None:
    """As many digits as a bound allows: longer texts cost no arithmetic."""
    if _VERSION.fullmatch(text) is None or int(text) > REVISION_MAX:
        return None
    return int(text)


def _key_id(call: Call[Any, Any, Any]) -> UUID:
    parsed = parse_uuid(call.path["api_key_id"])
    if parsed is None:
        raise KeyNotFound
    return parsed
