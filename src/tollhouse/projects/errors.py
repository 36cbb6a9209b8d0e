"""Errors of projects."""

from tollhouse.base.errors import GatewayError, Kind


class ProjectNotFound(GatewayError):
    """The project does not exist, or belongs to another organization."""

    kind = Kind.NOT_FOUND
    code = "project_not_found"
    param = "project_id"
    template = (
        "No such project in this organization. `GET /manage/v1/organization/projects` lists them."
    )


class ProjectIsArchived(GatewayError):
    """An archived project cannot be changed."""

    kind = Kind.CONFLICT
    code = "project_archived"
    should_retry = False
    param = "project_id"
    template = "The project is archived and takes no changes. Use another project."
