"""The stolen processor time is that of the kernel's own figures."""

from tests.endurance.stolen import parsed, stolen_share, ticks

BEFORE = "cpu  100 0 50 800 10 0 5 35 7 3\ncpu0 1 1 1 1 1 1 1 1 1 1\n"
AFTER = "cpu  150 0 80 900 10 0 5 55 9 3\ncpu0 2 2 2 2 2 2 2 2 2 2\n"


def test_the_share_is_that_of_the_ticks_between_two_moments() -> None:
    assert parsed(BEFORE) == (1000, 35), "guests' time is part of the first figure"
    assert stolen_share(parsed(BEFORE), parsed(AFTER)) == 0.1


def test_no_time_has_no_stolen_share() -> None:
    assert stolen_share(parsed(BEFORE), parsed(BEFORE)) == 0.0


def test_the_machine_has_ticks() -> None:
    found = ticks()

    assert found.all > found.stolen >= 0
