"""The project."""

from dataclasses import dataclass
from datetime import datetime

from tollhouse.base.ids import OrganizationId, ProjectId


@dataclass(frozen=True, kw_only=True, slots=True)
class Project:
    """A part of an organization. Archiving is final and keeps its usage readable.

    `allowed_models` of None allows every model. A key of the project may allow fewer.
    """

    organization_id: OrganizationId
    id: ProjectId
    name: str
    allowed_models: tuple[str, ...] | None
    created_at: datetime
    archived_at: datetime | None
