"""The page of guarantees leaves no promise out."""

from pathlib import Path

import pytest

from tools.long_runs import LongRun
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


@pytest.mark.parametrize(
    ("command", "findings", "is_recorded"),
    [
        ("TOLLHOUSE_KILLS=1000 pytest tests/faults", 0, True),
        ("TOLLHOUSE_KILLS=1000 pytest tests/faults/test_many_kills.py", 1, False),
        ("TOLLHOUSE_KILLS=999 pytest tests/faults/test_many_kills.py", 0, False),
        ("TOLLHOUSE_KILLS=1000 pytest tests/faults/test_stampede.py", 0, False),
    ],
)
def test_a_full_size_is_recorded_by_a_run_of_its_file_without_a_finding(
    command: str, findings: int, is_recorded: bool
) -> None:
    path = guarantees.TESTS / "faults" / "test_many_kills.py"
    runs = [run(command, seconds=5, cases=5, findings=findings)]

    assert guarantees.is_recorded(path, "TOLLHOUSE_KILLS", 1_000, runs) is is_recorded


@pytest.mark.parametrize(("seconds", "is_recorded"), [(900, True), (840, False)])
def test_a_run_by_a_command_of_its_own_counts_by_its_length(
    seconds: int, is_recorded: bool
) -> None:
    runs = [run("python -m tests.fuzz events", seconds=seconds, cases=7_000, findings=0)]

    found = guarantees.is_recorded(Path("test_fuzz.py"), "TOLLHOUSE_FUZZ_SECONDS", 900, runs)

    assert found is is_recorded


def run(command: str, *, seconds: int, cases: int, findings: int) -> LongRun:
    return LongRun(
        date="2026-01-01T00:00:00Z",
        commit="0" * 12,
        command=command,
        first_seed=0,
        last_seed=0,
        seconds=seconds,
        cases=cases,
        findings=findings,
    )
