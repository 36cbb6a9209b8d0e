"""Metrics of a host: its configuration, reloads and deaths of workers. The supervisor has them."""

from enum import StrEnum

from prometheus_client import Counter, Gauge

import tollhouse
from tollhouse.observability.registry import supervisor_registry

_configuration_info = Gauge(
    "tollhouse_configuration_info",
    "1 for the version of Tollhouse, and for the digest of what all hosts must have alike: the"
    " configuration without server, database, redis and otel.",
    ["version", "sha256"],
    registry=supervisor_registry,
)
_last_reload = Gauge(
    "tollhouse_last_reload",
    "1 for the outcome of the last reload: done, refused (the configuration is not valid) or"
    " aborted (a worker did not start).",
    ["outcome"],
    registry=supervisor_registry,
)
_worker_deaths = Counter(
    "tollhouse_worker_deaths_total",
    "Workers that ended without being stopped by the supervisor.",
    registry=supervisor_registry,
)


class ReloadOutcome(StrEnum):
    """How a reload ended. Only a reload that is done changes anything."""

    DONE = "done"
    REFUSED = "refused"
    ABORTED = "aborted"


def configured(digest: str) -> None:
    """Set the digest of the configuration that new workers get."""
    _configuration_info.clear()
    _configuration_info.labels(tollhouse.__version__, digest).set(1)


def reload_ended(outcome: ReloadOutcome | None) -> None:
    """Set the outcome of the last reload; None before the first one."""
    for each in ReloadOutcome:
        _last_reload.labels(each).set(int(each is outcome))


worker_died = _worker_deaths.inc
"""Count a worker that ended by itself."""
