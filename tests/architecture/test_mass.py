"""The tree may lose weight, and gains some only by a line that says who pays for it."""

from tools import mass

BOUNDS = {
    "src/tollhouse lines": 100,
    "src/tollhouse/api lines": 60,
    "src/tollhouse/cli lines": 40,
    "tests of T1": 2,
}


def test_a_number_that_rises_is_found_and_one_that_falls_is_not() -> None:
    assert not mass.worse(BOUNDS, BOUNDS)
    assert not mass.worse({**BOUNDS, "src/tollhouse lines": 99}, BOUNDS)
    assert mass.worse({**BOUNDS, "src/tollhouse lines": 101}, BOUNDS) == ["src/tollhouse lines"]
    assert mass.worse({**BOUNDS, "docs lines": 1}, BOUNDS) == ["docs lines"]


def test_a_package_may_gain_what_others_lose() -> None:
    moved = {**BOUNDS, "src/tollhouse/api lines": 0, "src/tollhouse/admin lines": 60}

    assert not mass.worse(moved, BOUNDS)
    assert mass.worse({**moved, "src/tollhouse lines": 110}, BOUNDS) == [
        "src/tollhouse lines",
        "src/tollhouse/admin lines",
    ]
    assert mass.lower(moved, BOUNDS) == moved


def test_a_guarantee_keeps_its_tests() -> None:
    assert mass.worse({**BOUNDS, "tests of T1": 1}, BOUNDS) == ["tests of T1"]
    assert mass.lower({**BOUNDS, "tests of T1": 3}, BOUNDS)["tests of T1"] == 3


def test_lowering_never_raises() -> None:
    heavier = {**BOUNDS, "src/tollhouse lines": 101, "docs lines": 1, "tests of T1": 1}

    assert mass.lower(heavier, BOUNDS) == BOUNDS


def test_a_rise_needs_someone_who_pays() -> None:
    def bounds(paid_by: str) -> mass.Numbers:
        raised = {"docs lines": {"to": 9, "paid_by": paid_by}}
        return mass.bounds_of({"numbers": BOUNDS, "raised": raised})

    assert bounds("") == BOUNDS
    assert not mass.worse({**BOUNDS, "docs lines": 9}, bounds("operators who upgrade"))
