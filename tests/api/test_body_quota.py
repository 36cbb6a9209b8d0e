"""How much memory bodies may use at once: of a worker, and of one organization in it."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tollhouse.api.body_quota import (
    SMALL_BODY_COST_MAX,
    BodyMemory,
    BodyQuota,
    parsed_cost,
)
from tollhouse.api.edge_errors import BodyQuotaExceeded, OrganizationBodyQuotaExceeded
from tollhouse.base.ids import OrganizationId

ORGANIZATIONS = [OrganizationId(UUID(int=number)) for number in range(1, 9)]
GREEDY, OTHER = ORGANIZATIONS[:2]
WORKER_MAX = 256 * 1024 * 1024
SHARE = WORKER_MAX // 4
ALLOWANCE = WORKER_MAX // 32
BODY_BYTES = 33_554_432
SMALL_BYTES = SMALL_BODY_COST_MAX // 2


def received(quota: BodyQuota, organization: OrganizationId, size_bytes: int) -> BodyMemory:
    held = BodyMemory(quota, organization)
    held.count_received(size_bytes)
    return held


def test_bytes_are_counted_in_all_and_given_back_once() -> None:
    quota = BodyQuota(WORKER_MAX)
    held = BodyMemory(quota, GREEDY)

    held.count_received(10)
    held.count_received(30)
    counted = quota.used_bytes
    held.release()
    held.release()

    assert counted == 60
    assert quota.used_bytes == 0


def test_an_organization_that_uses_its_share_is_refused_and_others_are_not() -> None:
    quota = BodyQuota(WORKER_MAX)
    first = received(quota, GREEDY, BODY_BYTES)

    with pytest.raises(OrganizationBodyQuotaExceeded) as refused:
        received(quota, GREEDY, SMALL_BODY_COST_MAX)
    received(quota, OTHER, BODY_BYTES)
    first.release()
    received(quota, GREEDY, SMALL_BODY_COST_MAX)

    assert refused.value.kind == 503
    assert refused.value.code == "body_quota_exceeded"
    assert refused.value.retry_after_seconds


def _fill(quota: BodyQuota, organization: OrganizationId, size_bytes: int) -> list[BodyMemory]:
    """Send bodies of a size until one is refused."""
    bodies: list[BodyMemory] = []
    while True:
        try:
            bodies.append(received(quota, organization, size_bytes))
        except BodyQuotaExceeded:
            return bodies


@pytest.mark.parametrize("sizes", [(BODY_BYTES // 2 - 1, SMALL_BYTES), (SMALL_BYTES, BODY_BYTES)])
def test_large_and_small_bodies_of_an_organization_have_one_share_together(
    sizes: tuple[int, int],
) -> None:
    quota = BodyQuota(WORKER_MAX)
    bodies = [
        body
        for organization in ORGANIZATIONS[:2]
        for size in sizes
        for body in _fill(quota, organization, size)
    ]

    assert quota.used_bytes <= 2 * (SHARE + ALLOWANCE)
    received(quota, ORGANIZATIONS[2], BODY_BYTES)
    for body in bodies:
        body.release()
    assert quota.used_bytes == 2 * BODY_BYTES


def test_a_large_body_leaves_its_organization_room_for_small_ones() -> None:
    quota = BodyQuota(WORKER_MAX)
    large = received(quota, GREEDY, BODY_BYTES)
    large.count_parsed(SHARE + 1)

    small = _fill(quota, GREEDY, SMALL_BYTES)

    assert len(small) == ALLOWANCE // SMALL_BODY_COST_MAX
    large.count_parsed(SHARE + 2)


def test_a_refused_body_is_counted_as_before() -> None:
    quota = BodyQuota(WORKER_MAX)
    received(quota, GREEDY, BODY_BYTES)
    held = received(quota, GREEDY, SMALL_BYTES)

    with pytest.raises(OrganizationBodyQuotaExceeded):
        held.count_received(BODY_BYTES)

    assert quota.used_bytes == 2 * (BODY_BYTES + SMALL_BYTES)


def test_one_body_alone_may_exceed_the_share() -> None:
    quota = BodyQuota(WORKER_MAX)
    held = received(quota, GREEDY, BODY_BYTES)
    cost = parsed_cost(BODY_BYTES, character_bytes=4, elements=0)

    held.count_parsed(cost)

    assert cost > SHARE
    assert quota.used_bytes == cost


def test_large_bodies_leave_room_for_small_ones_of_everybody() -> None:
    quota = BodyQuota(WORKER_MAX)
    for organization in ORGANIZATIONS[:3]:
        received(quota, organization, BODY_BYTES)
    received(quota, ORGANIZATIONS[3], BODY_BYTES // 2)

    with pytest.raises(BodyQuotaExceeded):
        received(quota, ORGANIZATIONS[4], SMALL_BODY_COST_MAX)
    for organization in ORGANIZATIONS:
        received(quota, organization, SMALL_BYTES)


def test_small_bodies_have_a_bound_too() -> None:
    quota = BodyQuota(WORKER_MAX)
    for _ in range(SHARE // SMALL_BODY_COST_MAX):
        received(quota, GREEDY, SMALL_BYTES)

    with pytest.raises(OrganizationBodyQuotaExceeded):
        received(quota, GREEDY, SMALL_BYTES)
    received(quota, OTHER, SMALL_BYTES)


@given(
    st.lists(
        st.tuples(st.integers(0, 7), st.integers(0, 5), st.integers(0, 3 * SHARE)), max_size=60
    )
)
def test_whatever_comes_and_goes_the_bounds_hold_and_nothing_stays(
    steps: list[tuple[int, int, int]],
) -> None:
    quota = BodyQuota(WORKER_MAX)
    bodies: dict[tuple[int, int], BodyMemory] = {}
    for organization, number, cost in steps:
        body = bodies.setdefault(
            (organization, number), BodyMemory(quota, ORGANIZATIONS[organization])
        )
        try:
            body.count_parsed(cost)
        except BodyQuotaExceeded:
            body.release()
        assert 0 <= quota.used_bytes <= WORKER_MAX
    for body in bodies.values():
        body.release()
    assert quota.used_bytes == 0
