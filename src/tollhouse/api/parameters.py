"""Parsing of IDs. Text that is no valid ID is answered like an unknown ID."""

import re
from collections.abc import Iterable
from typing import Any
from uuid import UUID

from msgspec import UnsetType

from tollhouse.api.call import OperationCall
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


def project_id(call: OperationCall[Any, Any, Any]) -> ProjectId:
    """Return the project ID in the path. Raises `ProjectNotFound`."""
    parsed = parse_uuid(call.path["project_id"])
    if parsed is None:
        raise ProjectNotFound
    return ProjectId(parsed)


def project_key_id(call: OperationCall[Any, Any, Any]) -> ProjectKeyId:
    """Return the project key ID in the path. Raises `KeyNotFound`."""
    return ProjectKeyId(_key_id(call))


def admin_key_id(call: OperationCall[Any, Any, Any]) -> AdminKeyId:
    """Return the Admin key ID in the path. Raises `KeyNotFound`."""
    return AdminKeyId(_key_id(call))


def policy_id(call: OperationCall[Any, Any, Any]) -> PolicyId:
    """Return the policy ID in the path. Raises `PolicyNotFound`."""
    parsed = parse_policy_id(call.path["policy_id"])
    if parsed is None:
        raise PolicyNotFound
    return parsed


def version(call: OperationCall[Any, Any, Any]) -> int:
    """Return the version number in the path. Raises `PolicyVersionNotFound`."""
    number = _version(call.path["version"])
    if number is None:
        raise PolicyVersionNotFound
    return number


def project_ids(sent: Iterable[str]) -> tuple[ProjectId, ...]:
    """Return the project IDs in the body of a policy. Raises `TargetNotFound`."""
    parsed = [(text, parse_uuid(text)) for text in sent]
    if unknown := [text for text, one in parsed if one is None]:
        raise TargetNotFound(unknown)
    return tuple(ProjectId(one) for _, one in parsed if one is not None)


def cursor(after: str | UnsetType) -> UUID | None:
    """Return the last ID of the previous page, or None for the first page."""
    if isinstance(after, UnsetType):
        return None
    parsed = parse_uuid(after)
    if parsed is None:
        raise UnknownCursor
    return parsed


def policy_cursor(after: str | UnsetType) -> PolicyId | None:
    """Return the last policy of the previous page, or None for the first page."""
    if isinstance(after, UnsetType):
        return None
    parsed = parse_policy_id(after)
    if parsed is None:
        raise UnknownCursor
    return parsed


def version_cursor(after: str | UnsetType, of: PolicyId) -> int | None:
    """Return the last version of the previous page, or None for the first page.

    Raises `UnknownCursor` for a version of another policy.
    """
    if isinstance(after, UnsetType):
        return None
    number = _version(after.rpartition("_v")[2])
    if number is None or policy_version_id_text(of, number) != after:
        raise UnknownCursor
    return number


def _version(text: str) -> int | None:
    """Return the version number, or None. Text with too many digits is not converted."""
    if _VERSION.fullmatch(text) is None or int(text) > REVISION_MAX:
        return None
    return int(text)


def _key_id(call: OperationCall[Any, Any, Any]) -> UUID:
    parsed = parse_uuid(call.path["api_key_id"])
    if parsed is None:
        raise KeyNotFound
    return parsed
