"""Random tests share a seed, which a run prints and a failure repeats."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import seeds

ROOT = Path(__file__).parents[2]
FAILING = """
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import seeds


def test_by_chance():
    assert seeds.chance().random() > 2


@settings(database=None)
@given(st.integers())
def test_by_hypothesis(number):
    assert number < 1000


def test_without_chance():
    assert False
"""


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The lines that pytest prints about the failing tests above."""
    path = tmp_path_factory.mktemp("failing") / "test_failing.py"
    path.write_text(FAILING, "utf-8")
    options = [f"--rootdir={ROOT}", "--import-mode=importlib", "-ptests.conftest"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options, str(path)],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
        env=os.environ | {seeds.NAME: "42", "TOLLHOUSE_STEPS": "7"},
    )
    return done.stdout.splitlines()


def test_a_run_prints_the_seed_that_it_is_given(printed: list[str]) -> None:
    assert "TOLLHOUSE_SEED=42" in printed


def test_a_failure_of_a_random_test_prints_the_command_that_repeats_it(printed: list[str]) -> None:
    commands = [line for line in printed if line.startswith("TOLLHOUSE_SEED=42 ")]

    assert all(" TOLLHOUSE_STEPS=7 " in command for command in commands)
    assert [command.rpartition("::")[2] for command in commands] == [
        "test_by_chance",
        "test_by_hypothesis",
    ]


def test_without_a_given_seed_it_is_the_commits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(seeds.NAME, raising=False)

    assert seeds.of_run() == seeds.of_run() > 0


def test_equal_seeds_draw_equally_and_parts_differently(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(seeds.NAME, "3")

    assert seeds.chance().random() == seeds.chance().random()
    assert seeds.chance("a").random() != seeds.chance("b").random()
