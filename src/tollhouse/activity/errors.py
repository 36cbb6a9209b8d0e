"""How questions about requests fail."""

from tollhouse.base.errors import GatewayError, InvalidRequest, Kind


class RequestNotFound(GatewayError):
    """Unknown, forgotten, not written yet, or another organization's."""

    kind = Kind.NOT_FOUND
    code = "request_not_found"

    def __init__(self) -> None:
        super().__init__(
            "No such request in this organization. A record is there about a second after its "
            "request has ended, for as long as the operator keeps records.",
            param="request_id",
        )


class ProjectNotFound(GatewayError):
    """The project of the filter is unknown, or another organization's."""

    kind = Kind.NOT_FOUND
    code = "project_not_found"

    def __init__(self) -> None:
        super().__init__(
            "No such project in this organization. "
            "`GET /manage/v1/organization/projects` lists them.",
            param="project_id",
        )


class KeyNotFound(GatewayError):
    """The key of the filter is unknown, or another organization's."""

    kind = Kind.NOT_FOUND
    code = "api_key_not_found"

    def __init__(self) -> None:
        super().__init__(
            "No such project key in this organization. "
            "`GET /manage/v1/organization/projects/{project_id}/api_keys` lists them.",
            param="api_key_id",
        )


class EmptyRange(InvalidRequest):
    """A range without an end ends now, which is before its start."""

    def __init__(self) -> None:
        message = "Invalid 'start_time': it must lie before the end, which is now if none is sent."
        super().__init__("invalid_value", message, param="start_time")


class RangeTooLong(InvalidRequest):
    """More hours than one answer holds."""

    def __init__(self, hours_max: int) -> None:
        message = f"Invalid 'end_time': a range has at most {hours_max} hours."
        super().__init__("invalid_value", message, param="end_time")


class TooManyGroups(InvalidRequest):
    """The groups of the range are more than one answer holds."""

    def __init__(self, rows_max: int) -> None:
        message = f"This would be more than {rows_max} rows. Ask for fewer hours, or do not group."
        super().__init__("invalid_value", message, param="group_by")
