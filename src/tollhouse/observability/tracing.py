"""Whether spans are sent. The packages that send them are an extra, imported only if needed."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from tollhouse.base.errors import DeploymentError
from tollhouse.base.trace_context import TraceContext, continued_trace

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


def trace_contexts(
    endpoint: str | None, *, follows_callers: bool, sample_ratio: float
) -> Callable[[UUID, Sequence[bytes] | None], TraceContext] | None:
    """Return the function that gives requests their place in a trace, or None without an endpoint.

    Its arguments are the ID of the request and the values of its header `traceparent`.
    """
    if endpoint is None:
        return None

    def context(request_id: UUID, traceparents: Sequence[bytes] | None) -> TraceContext:
        found = traceparents if follows_callers else None
        return continued_trace(request_id, found).sampled(sample_ratio)

    return context


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
