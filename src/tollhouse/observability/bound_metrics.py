"""Metrics of limits on memory, connections and work."""

from enum import StrEnum
from typing import Literal

from tollhouse.base.quotas import Quota
from tollhouse.observability.buffered_metrics import BufferedCounter, BufferedGauge
from tollhouse.observability.registry import registry

_idle_connections_closed = BufferedCounter(
    "tollhouse_idle_connections_closed_total",
    "Connections that were idle or sent a body, and were closed in favour of new ones.",
    registry=registry,
)
_requests_shed = BufferedCounter(
    "tollhouse_requests_shed_total",
    "Requests refused with 503 because the worker had more than it could handle.",
    registry=registry,
)
_bodies_held_bytes = BufferedGauge(
    "tollhouse_bodies_held_bytes",
    "Memory for the bodies of requests in flight, as counted against the quota.",
    multiprocess_mode="livesum",
    registry=registry,
)
_bodies_refused = BufferedCounter(
    "tollhouse_bodies_refused_total",
    "Requests refused because of a limit on bodies, by limit.",
    ["bound"],
    registry=registry,
)
_readers_cut = BufferedCounter(
    "tollhouse_readers_cut_total",
    "Connections that were closed because the caller did not read the response, by reason.",
    ["reason"],
    registry=registry,
)
_quota_refusals = BufferedCounter(
    "tollhouse_quota_refusals_total",
    "Requests refused because of a quota of the organization, by quota.",
    ["quota"],
    registry=registry,
)


class BodyBound(StrEnum):
    """The limit that refused a body: memory, or the bodies read and parsed concurrently."""

    WORKER_BYTES = "worker_bytes"
    ORGANIZATION_BYTES = "organization_bytes"
    KEY_BODIES = "key_bodies"
    ORGANIZATION_BODIES = "organization_bodies"


def body_refused(bound: BodyBound) -> None:
    """Count one request whose body was not read or not parsed because of a limit."""
    _bodies_refused.labels(bound).add()


def bodies_held(size_bytes: int) -> None:
    """Set the memory for request bodies of this worker."""
    _bodies_held_bytes.set(size_bytes)


def idle_connection_closed() -> None:
    """Count a connection that was closed in favour of a new one."""
    _idle_connections_closed.add()


def request_shed() -> None:
    """Count a request that an overloaded worker refused."""
    _requests_shed.add()


def quota_refused(quota: Quota) -> None:
    """Count one request that a quota of its organization refused."""
    _quota_refusals.labels(quota).add()


def reader_cut(reason: Literal["stalled", "deadline", "buffer"]) -> None:
    """Count a closed connection: no progress, the request's deadline, or a full buffer."""
    _readers_cut.labels(reason).add()
