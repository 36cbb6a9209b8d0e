"""How much memory the bodies of a worker's requests may use at once, and each organization's share.

A body counts with the memory that it needs: its bytes as they arrive, and before it is parsed the
texts and elements that the parser will allocate. It counts until the request has ended.
"""

from typing import Final

from msgspec import Struct

from tollhouse.api.edge_errors import BodyQuotaExceeded, OrganizationBodyQuotaExceeded
from tollhouse.base.ids import OrganizationId
from tollhouse.observability import bound_metrics
from tollhouse.observability.bound_metrics import BodyBound

ORGANIZATION_SHARE: Final = 4
"""All bodies of one organization may use this part of the worker's quota. One large body alone may
exceed it; otherwise a body of that size could never be sent."""
ALLOWANCE_SHARE: Final = 32
"""An organization's small bodies may always use this part of the worker's quota, whatever its large
bodies use."""
SMALL_BODIES_SHARE: Final = 8
"""This part of the worker's quota is reserved for small bodies."""
SMALL_BODY_COST_MAX: Final = 256 * 1024
"""A body of at most this cost is small."""
BYTE_COST: Final = 2
"""A byte of the body is in memory twice: as received and as text, later as text and as the upstream
request. Text that is not ASCII needs more (`parsed_cost`)."""
ELEMENT_COST: Final = 112
"""The most bytes that the parser allocates for one structural element; measured."""


def parsed_cost(size_bytes: int, *, character_bytes: int, elements: int) -> int:
    """Return the memory that a body needs while it is parsed and answered.

    Encoding text that is not ASCII creates one more copy, in UTF-8.
    """
    copies = BYTE_COST if character_bytes == 1 else 2 + character_bytes
    return size_bytes * copies + elements * ELEMENT_COST


class _OrganizationUsage(Struct):
    """The memory that the bodies of one organization use now."""

    small: int = 0
    large: int = 0


class BodyQuota:
    """One per worker."""

    def __init__(self, worker_bytes_max: int) -> None:
        self._worker_max = worker_bytes_max
        self._large_max = worker_bytes_max - worker_bytes_max // SMALL_BODIES_SHARE
        self._organization_max = worker_bytes_max // ORGANIZATION_SHARE
        self._allowance = worker_bytes_max // ALLOWANCE_SHARE
        self._usage: dict[OrganizationId, _OrganizationUsage] = {}
        self.used_bytes = 0

    def change(self, organization_id: OrganizationId, *, before: int, after: int) -> None:
        """Replace the cost of one body by another. Raises if the quota does not allow more."""
        usage = self._usage.get(organization_id)
        if usage is None:
            usage = self._usage[organization_id] = _OrganizationUsage()
        small, large = usage.small, usage.large
        if before <= SMALL_BODY_COST_MAX:
            small -= before
        else:
            large -= before
        if after > before:
            self._refuse_excess(small=small, large=large, before=before, after=after)
        if after <= SMALL_BODY_COST_MAX:
            small += after
        else:
            large += after
        usage.small, usage.large = small, large
        self.used_bytes += after - before
        if not (small or large):
            del self._usage[organization_id]

    def _refuse_excess(self, *, small: int, large: int, before: int, after: int) -> None:
        """`small` and `large` are the costs of the organization's other bodies."""
        is_small = after <= SMALL_BODY_COST_MAX
        if is_small:
            is_exempt = small + after <= self._allowance
        else:
            is_exempt = not large and small <= self._allowance
        if small + large + after > self._organization_max and not is_exempt:
            bound_metrics.body_refused(BodyBound.ORGANIZATION_BYTES)
            raise OrganizationBodyQuotaExceeded
        if self.used_bytes - before + after > (self._worker_max if is_small else self._large_max):
            bound_metrics.body_refused(BodyBound.WORKER_BYTES)
            raise BodyQuotaExceeded


class BodyMemory:
    """The memory that one request's body uses, from its first byte until the request has ended."""

    __slots__ = ("_cost", "_quota", "organization_id")

    def __init__(self, quota: BodyQuota, organization_id: OrganizationId) -> None:
        self._quota = quota
        self.organization_id = organization_id
        self._cost = 0

    def count_received(self, size_bytes: int) -> None:
        """Count the bytes received so far. Raises if the quota does not allow them."""
        cost = size_bytes * BYTE_COST
        self._quota.change(self.organization_id, before=self._cost, after=cost)
        self._cost = cost

    def count_parsed(self, cost: int) -> None:
        """Count `cost` instead of the cost so far. Raises if the quota does not allow it."""
        self._quota.change(self.organization_id, before=self._cost, after=cost)
        self._cost = cost

    def release(self) -> None:
        """Stop counting. Further calls change nothing."""
        if self._cost:
            self._quota.change(self.organization_id, before=self._cost, after=0)
            self._cost = 0
