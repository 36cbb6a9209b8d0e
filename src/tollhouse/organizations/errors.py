"""How verbs on organizations fail."""

from tollhouse.base.errors import GatewayError, Kind


class OrganizationNotFound(GatewayError):
    """No organization has this ID."""

    kind = Kind.NOT_FOUND
    code = "organization_not_found"

    def __init__(self) -> None:
        super().__init__("No such organization.")


class OrganizationClosed(GatewayError):
    """A closed organization stays closed."""

    kind = Kind.CONFLICT
    code = "organization_closed"
    should_retry = False

    def __init__(self) -> None:
        super().__init__("The organization is closed, and closing is final.")


class TooManyChecks(GatewayError):
    """The organization has as many checks as it may have."""

    kind = Kind.CONFLICT
    code = "too_many_checks"
    should_retry = False

    def __init__(self, checks_max: int) -> None:
        super().__init__(f"An organization has at most {checks_max} checks. Revoke one first.")
