"""Nobody takes all of what a worker has for everybody."""

from uuid import UUID

from tollhouse.base.ids import OrganizationId
from tollhouse.base.quotas import WorkerQuota

GREEDY, OTHER = (OrganizationId(UUID(int=number)) for number in (1, 2))


def test_an_organization_gets_a_quarter_and_leaves_the_rest() -> None:
    quota = WorkerQuota(40)

    assert [quota.acquire(GREEDY, 5) for _ in range(3)] == [True, True, False]
    assert quota.acquire(OTHER, 10)
    assert quota.used == 20


def test_all_together_get_no_more_than_there_is() -> None:
    quota = WorkerQuota(40)
    organizations = [OrganizationId(UUID(int=number)) for number in range(5)]

    assert [quota.acquire(each, 9) for each in organizations] == [True] * 4 + [False]


def test_what_was_given_back_can_be_taken_again() -> None:
    quota = WorkerQuota(40)
    assert quota.acquire(GREEDY, 10)
    quota.release(GREEDY, 10)

    assert quota.used == 0
    assert quota.acquire(GREEDY, 10)


def test_where_there_is_nothing_nobody_gets_anything() -> None:
    assert not WorkerQuota(0).acquire(GREEDY, 1)
