"""Errors of request records."""

from tollhouse.base.errors import GatewayError, InvalidInput, Kind


class RequestNotFound(GatewayError):
    """The organization has no such request, or its record is not written yet or was deleted."""

    kind = Kind.NOT_FOUND
    code = "request_not_found"
    param = "request_id"
    template = (
        "No such request in this organization. A record is there about a second after its request "
        "has ended, for as long as the operator keeps records."
    )


class RecordProjectNotFound(GatewayError):
    """The project of the filter does not exist, or belongs to another organization."""

    kind = Kind.NOT_FOUND
    code = "project_not_found"
    param = "project_id"
    template = (
        "No such project in this organization. `GET /manage/v1/organization/projects` lists them."
    )


class RecordKeyNotFound(GatewayError):
    """The key of the filter does not exist, or belongs to another organization."""

    kind = Kind.NOT_FOUND
    code = "api_key_not_found"
    param = "api_key_id"
    template = (
        "No such project key in this organization. `GET "
        "/manage/v1/organization/projects/{{project_id}}/api_keys` lists them."
    )


class RangeTooLong(InvalidInput):
    """The range has more hours than one report may have."""

    param = "end_time"
    template = "Invalid 'end_time': a range has at most {self.hours_max} hours."
    hours_max: int


class TooManyGroups(InvalidInput):
    """The report would have more rows than one report may have."""

    param = "group_by"
    template = "This would be more than {self.rows_max} rows. Ask for fewer hours, or do not group."
    rows_max: int
