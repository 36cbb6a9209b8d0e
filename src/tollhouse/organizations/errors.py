"""Errors of organizations."""

from tollhouse.base.errors import DeploymentError, GatewayError, Kind


class OrganizationNotFound(GatewayError):
    """No organization has this ID."""

    kind = Kind.NOT_FOUND
    code = "organization_not_found"
    template = "No such organization."


class OrganizationClosed(GatewayError):
    """The organization is closed for good."""

    kind = Kind.CONFLICT
    code = "organization_closed"
    should_retry = False
    template = "The organization is closed, and closing is final."


class TooManyChecks(GatewayError):
    """The organization has as many checks as it may have."""

    kind = Kind.CONFLICT
    code = "too_many_checks"
    should_retry = False
    template = "An organization has at most {self.checks_max} checks. Revoke one first."
    checks_max: int


class MoveConflict(DeploymentError):
    """A step of a move does not fit the state that the organization is in."""

    code = "move_conflict"
