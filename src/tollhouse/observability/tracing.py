"""Whether spans are sent: the packages for it are an extra, imported only where it is wanted."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tollhouse.observability.traces import Traces


class PackagesMissing(Exception):
    """There is an endpoint for spans, and nothing installed that could speak to it."""

    def __init__(self) -> None:
        super().__init__(
            "otel.endpoint: the packages that send spans are not installed. "
            "Install tollhouse[otel], or remove the setting."
        )


def traces_to(endpoint: str | None) -> "Traces | None":
    """What sends spans to this endpoint; nothing without one."""
    return None if endpoint is None else _traces().to(endpoint)


def refuse_missing_packages(endpoint: str | None) -> None:
    """Fail now with the sentence that every worker would fail with."""
    if endpoint is not None:
        _traces()


def _traces() -> "type[Traces]":
    try:
        from tollhouse.observability.traces import Traces  # noqa: PLC0415 - see above
    except ModuleNotFoundError:
        raise PackagesMissing from None
    return Traces
