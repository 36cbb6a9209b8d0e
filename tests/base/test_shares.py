"""Nobody takes all of what a worker has for everybody."""

from uuid import UUID

from tollhouse.base.ids import OrganizationId
from tollhouse.base.shares import Shares

GREEDY, OTHER = (OrganizationId(UUID(int=number)) for number in (1, 2))


def test_an_organization_gets_a_quarter_and_leaves_the_rest() -> None:
    shares = Shares(40)

    assert [shares.take(GREEDY, 5) for _ in range(3)] == [True, True, False]
    assert shares.take(OTHER, 10)
    assert shares.used == 20


def test_all_together_get_no_more_than_there_is() -> None:
    shares = Shares(40)
    organizations = [OrganizationId(UUID(int=number)) for number in range(5)]

    assert [shares.take(each, 9) for each in organizations] == [True] * 4 + [False]


def test_what_was_given_back_can_be_taken_again() -> None:
    shares = Shares(40)
    assert shares.take(GREEDY, 10)
    shares.give_back(GREEDY, 10)

    assert shares.used == 0
    assert shares.take(GREEDY, 10)


def test_where_there_is_nothing_nobody_gets_anything() -> None:
    assert not Shares(0).take(GREEDY, 1)
