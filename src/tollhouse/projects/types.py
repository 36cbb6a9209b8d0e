"""The project."""

from dataclasses import dataclass
from datetime import datetime

from tollhouse.base.ids import OrganizationId, ProjectId


@dataclass(frozen=True, kw_only=True, slots=True)
class Project:
    """A part of an organization. Archiving is final and keeps its usage readable.

    Without `allowed_models` its keys may use every model, unless they are narrower themselves.
    """

    organization_id: OrganizationId
    id: ProjectId
    name: str
    allowed_models: tuple[str, ...] | None
    created_at: datetime
    archived_at: datetime | None
