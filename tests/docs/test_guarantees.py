"""The page of guarantees leaves no promise out."""

from pathlib import Path

import pytest

from tools.reference import guarantees
from tools.reference.guarantees import Promise

MARKED = """
import pytest

@pytest.mark.parametrize("number", [1])
@pytest.mark.guarantee("T1", "T2")
async def test_a_sentence(number): ...

def test_another(): ...
"""


def test_marks_are_read_with_the_name_of_their_test(tmp_path: Path) -> None:
    path = tmp_path / "test_money.py"
    path.write_text(MARKED, encoding="utf-8")

    found = guarantees.marked(tmp_path)

    assert found == {"T1": [(path, "test_a_sentence")], "T2": [(path, "test_a_sentence")]}


@pytest.mark.parametrize(
    ("tests", "problem"),
    [
        ({}, "T1 has no marked test: mark one, or say the reason in guarantees.toml"),
        ({"T1": [1], "T9": [1]}, "a test is marked with T9, which guarantees.toml does not have"),
    ],
)
def test_a_promise_without_a_test_and_a_mark_without_a_promise_are_problems(
    tests: dict[str, list[object]], problem: str
) -> None:
    promises = {"T1": Promise("exact"), "T2": Promise("late", gap="It takes a day.")}

    assert guarantees.problems(promises, tests) == [problem]


def test_a_count_has_the_size_of_ci_and_the_full_one() -> None:
    page = guarantees.page()

    assert "`TOLLHOUSE_DISCONNECTS` 60 → 1,000" in page
