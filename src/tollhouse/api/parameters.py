"""IDs from paths and cursors: text that cannot be an ID is answered like an unknown one."""

from typing import Any
from uuid import UUID

from msgspec import UnsetType

from tollhouse.api.call import Call
from tollhouse.base.errors import UnknownCursor
from tollhouse.base.ids import AdminKeyId, ProjectId, ProjectKeyId, parse_uuid
from tollhouse.keys.errors import KeyNotFound
from tollhouse.projects.errors import ProjectNotFound


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


def cursor(after: str | UnsetType) -> UUID | None:
    """Where the page before ended; nothing on the first page."""
    if isinstance(after, UnsetType):
        return None
    parsed = parse_uuid(after)
    if parsed is None:
        raise UnknownCursor
    return parsed


def _key_id(call: Call[Any, Any, Any]) -> UUID:
    parsed = parse_uuid(call.path["api_key_id"])
    if parsed is None:
        raise KeyNotFound
    return parsed
