"""What bounds on memory, connections and work refuse or cut, and how much of them is used."""

from enum import StrEnum
from typing import Literal

from prometheus_client import Counter, Gauge

from tollhouse.base.quotas import Quota
from tollhouse.observability.registry import registry

_idle_connections_closed = Counter(
    "tollhouse_idle_connections_closed_total",
    "Connections that were idle or sent a body, and were closed to make room for new ones.",
    registry=registry,
)
_bodies_held_bytes = Gauge(
    "tollhouse_bodies_held_bytes",
    "Memory that the bodies of requests in flight take, as counted against the quota.",
    multiprocess_mode="livesum",
    registry=registry,
)
_bodies_refused = Counter(
    "tollhouse_bodies_refused_total",
    "Requests refused because of a bound on bodies, by bound.",
    ["bound"],
    registry=registry,
)
_readers_cut = Counter(
    "tollhouse_readers_cut_total",
    "Connections that were cut because nobody read the answer, by reason.",
    ["reason"],
    registry=registry,
)
_quota_refusals = Counter(
    "tollhouse_quota_refusals_total",
    "Requests that a bound on the work or the resources of one organization refused, by bound.",
    ["quota"],
    registry=registry,
)


class BodyBound(StrEnum):
    """Which bound on bodies refused one: memory, or how many are read and parsed at once."""

    WORKER_BYTES = "worker_bytes"
    ORGANIZATION_BYTES = "organization_bytes"
    KEY_BODIES = "key_bodies"
    ORGANIZATION_BODIES = "organization_bodies"


def body_refused(bound: BodyBound) -> None:
    """Count one request whose body was not read to its end, or not parsed, because of a bound."""
    _bodies_refused.labels(bound).inc()


def bodies_held(size_bytes: int) -> None:
    """Set the memory that the bodies of this worker's requests take."""
    _bodies_held_bytes.set(size_bytes)


def idle_connection_closed() -> None:
    """Count a connection without a complete request that made way for a new one."""
    _idle_connections_closed.inc()


def quota_refused(quota: Quota) -> None:
    """Count one request that a bound of its organization refused."""
    _quota_refusals.labels(quota).inc()


def reader_cut(reason: Literal["stalled", "deadline", "buffer"]) -> None:
    """Count a connection that was cut: no progress, the request's deadline, or no room to wait."""
    _readers_cut.labels(reason).inc()
