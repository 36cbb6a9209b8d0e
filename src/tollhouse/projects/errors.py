"""How verbs on projects fail."""

from tollhouse.base.errors import GatewayError, Kind


class ProjectNotFound(GatewayError):
    """Unknown, or another organization's: the answer does not tell which."""

    kind = Kind.NOT_FOUND
    code = "project_not_found"

    def __init__(self) -> None:
        super().__init__(
            "No such project in this organization. "
            "`GET /manage/v1/organization/projects` lists them.",
            param="project_id",
        )


class ProjectIsArchived(GatewayError):
    """An archived project takes no changes."""

    kind = Kind.CONFLICT
    code = "project_archived"
    should_retry = False

    def __init__(self) -> None:
        super().__init__(
            "The project is archived and takes no changes. Use another project.", param="project_id"
        )
