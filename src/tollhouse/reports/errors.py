"""How reports fail."""

from collections.abc import Sequence

from tollhouse.base.errors import GatewayError, InvalidRequest, Kind, listed_ids


class ProjectNotFound(GatewayError):
    """A project of the filter is unknown, or another organization's."""

    kind = Kind.NOT_FOUND
    code = "project_not_found"

    def __init__(self, unknown: Sequence[str]) -> None:
        super().__init__(
            f"No project of this organization has {listed_ids(unknown)}. "
            "`GET /manage/v1/organization/projects` lists them.",
            param="project_ids",
        )


class KeyNotFound(GatewayError):
    """A key of the filter is unknown, or another organization's."""

    kind = Kind.NOT_FOUND
    code = "api_key_not_found"

    def __init__(self, unknown: Sequence[str]) -> None:
        super().__init__(
            f"No project key of this organization has {listed_ids(unknown)}. "
            "`GET /manage/v1/organization/projects/{project_id}/api_keys` lists them.",
            param="api_key_ids",
        )


class EmptyRange(InvalidRequest):
    """A range without an end ends now, which is before its start."""

    def __init__(self) -> None:
        message = "Invalid 'start_time': it must lie before the end, which is now if none is sent."
        super().__init__("invalid_value", message, param="start_time")


class InvalidCursor(InvalidRequest):
    """Forged, another organization's, or made for another question: the answer does not tell."""

    def __init__(self) -> None:
        message = "Invalid 'page': not the next page of this report. Keep all other parameters."
        super().__init__("invalid_value", message, param="page")


class DetailIsGone(InvalidRequest):
    """Only whole hours are known of a day whose entries have passed their retention."""

    def __init__(self, param: str) -> None:
        message = f"Invalid '{param}': of so old a day only whole hours are known."
        super().__init__("invalid_value", message, param=param)
