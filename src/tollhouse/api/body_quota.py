"""How much memory the bodies of a worker's requests may use at once, and each organization's share.

What counts is what a body costs, not what it says of itself: bytes as they arrive, and before it is
parsed the texts and elements that the parser will build. All of it is counted until the request has
ended.
"""

from dataclasses import dataclass
from typing import Final

from tollhouse.api.edge_errors import BodyQuotaExceeded, OrganizationBodyQuotaExceeded
from tollhouse.base.ids import OrganizationId
from tollhouse.observability import bound_metrics
from tollhouse.observability.bound_metrics import BodyBound

ORGANIZATION_SHARE: Final = 4
"""All bodies of one organization may use this part of the worker's quota; one large body alone may
exceed it, or none of that size would ever pass."""
ALLOWANCE_SHARE: Final = 32
"""An organization's small bodies may always use this part of the worker's quota. Large bodies do
not use it up, and one large body is still alone beside them."""
SMALL_BODIES_SHARE: Final = 8
"""This part of the worker's quota is kept for small bodies."""
SMALL_BODY_COST_MAX: Final = 256 * 1024
"""Bodies that cost no more are small."""
BYTE_COST: Final = 2
"""A byte of the body is held as it was received and as text, and then as text and as what is sent
upstream; text that is not ASCII takes more (`parsed_cost`)."""
ELEMENT_COST: Final = 112
"""Bytes that the parser allocates for each structural element, at most; measured."""


def parsed_cost(size_bytes: int, *, character_bytes: int, elements: int) -> int:
    """Return the memory that a body takes while it is parsed and answered.

    Text that is not ASCII is held once more in UTF-8 whenever it is encoded.
    """
    copies = BYTE_COST if character_bytes == 1 else 2 + character_bytes
    return size_bytes * copies + elements * ELEMENT_COST


@dataclass(slots=True)
class _Usage:
    """What the bodies of one organization cost now."""

    small: int = 0
    large: int = 0

    def add(self, cost: int, sign: int) -> None:
        """Count one body, or with -1 no longer."""
        if cost <= SMALL_BODY_COST_MAX:
            self.small += sign * cost
        else:
            self.large += sign * cost

    def without(self, cost: int) -> "_Usage":
        """Return what all others cost, if one body costs so much."""
        others = _Usage(small=self.small, large=self.large)
        others.add(cost, -1)
        return others


class BodyQuota:
    """One per worker."""

    def __init__(self, worker_bytes_max: int) -> None:
        self._worker_max = worker_bytes_max
        self._large_max = worker_bytes_max - worker_bytes_max // SMALL_BODIES_SHARE
        self._organization_max = worker_bytes_max // ORGANIZATION_SHARE
        self._allowance = worker_bytes_max // ALLOWANCE_SHARE
        self._usage: dict[OrganizationId, _Usage] = {}
        self.used_bytes = 0

    def for_request(self, organization_id: OrganizationId) -> "HeldBody":
        """Return the account of one request's body; who gets it releases it."""
        return HeldBody(self, organization_id)

    def change(self, organization_id: OrganizationId, *, before: int, after: int) -> None:
        """Count that a body costs something else now. Raises if there is no room for more."""
        usage = self._usage.setdefault(organization_id, _Usage())
        if after > before:
            self._refuse_excess(usage, before=before, after=after)
        usage.add(before, -1)
        usage.add(after, 1)
        self.used_bytes += after - before
        if not (usage.small or usage.large):
            del self._usage[organization_id]

    def _refuse_excess(self, usage: _Usage, *, before: int, after: int) -> None:
        is_small = after <= SMALL_BODY_COST_MAX
        others = usage.without(before)
        total = others.small + others.large + after
        if total > self._organization_max and not self._is_exempt(others, after):
            bound_metrics.body_refused(BodyBound.ORGANIZATION_BYTES)
            raise OrganizationBodyQuotaExceeded
        if self.used_bytes - before + after > (self._worker_max if is_small else self._large_max):
            bound_metrics.body_refused(BodyBound.WORKER_BYTES)
            raise BodyQuotaExceeded

    def _is_exempt(self, others: _Usage, cost: int) -> bool:
        """Whether a body may exceed the share of its organization."""
        if cost <= SMALL_BODY_COST_MAX:
            return others.small + cost <= self._allowance
        return not others.large and others.small <= self._allowance


class HeldBody:
    """What one request's body costs, from its first byte until the request has ended.

    `is_large` says that it waited for its organization's turn to be parsed, `is_costly` that it
    waited for the worker's too. `busy_seconds` is the time that the event loop was busy with it
    afterwards.
    """

    __slots__ = ("_cost", "_quota", "busy_seconds", "is_costly", "is_large", "organization_id")

    def __init__(self, quota: BodyQuota, organization_id: OrganizationId) -> None:
        self._quota = quota
        self.organization_id = organization_id
        self.is_large = False
        self.is_costly = False
        self.busy_seconds = 0.0
        self._cost = 0

    def received(self, size_bytes: int) -> None:
        """Count so many bytes in all. Raises if there is no room for them."""
        self._change(size_bytes * BYTE_COST)

    def will_cost(self, cost: int) -> None:
        """Count so much in all before it is parsed. Raises if there is no room for it."""
        self._change(cost)

    def release(self) -> None:
        """Count nothing any more; any number of times."""
        self._change(0)

    def _change(self, cost: int) -> None:
        if cost != self._cost:
            self._quota.change(self.organization_id, before=self._cost, after=cost)
            self._cost = cost
