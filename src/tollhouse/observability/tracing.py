"""Whether spans are sent. The packages that send them are an extra, imported only if needed."""

from typing import TYPE_CHECKING

from tollhouse.base.errors import DeploymentError

if TYPE_CHECKING:
    from tollhouse.observability.traces import Traces


class PackagesMissing(DeploymentError):
    """An endpoint for spans is configured, but the packages to send them are not installed."""

    code = "packages_missing"

    def __init__(self) -> None:
        super().__init__(
            "otel.endpoint: the packages that send spans are not installed. "
            "Install tollhouse[otel], or remove the setting."
        )


def traces_to(endpoint: str | None) -> "Traces | None":
    """Return the exporter for this endpoint, or None without an endpoint."""
    return None if endpoint is None else _traces().to(endpoint)


def refuse_missing_packages(endpoint: str | None) -> None:
    """Raise `PackagesMissing` if an endpoint is configured and the packages are missing."""
    if endpoint is not None:
        _traces()


def _traces() -> "type[Traces]":
    try:
        from tollhouse.observability.traces import Traces  # noqa: PLC0415 - see above
    except ModuleNotFoundError:
        raise PackagesMissing from None
    return Traces
