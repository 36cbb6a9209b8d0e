"""The project."""

from dataclasses import dataclass
from datetime import datetime

from tollhouse.base.ids import OrganizationId, ProjectId


@dataclass(frozen=True, kw_only=True, slots=True)
class Project:
    """A part of an organization. Archiving is final and keeps its usage readable."""

    organization_id: OrganizationId
    id: ProjectId
    name: str
    created_at: datetime
    archived_at: datetime | None
