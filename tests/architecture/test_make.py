"""`make test-long` and `make bench` leave nothing out."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COUNT = re.compile(r'int\(os\.environ\.get\("(TOLLHOUSE_\w+)"')
BENCHES = sorted(path.stem for path in (ROOT / "bench").glob("*.py"))


def commands(target: str) -> str:
    return subprocess.run(
        ["make", "--dry-run", target],  # noqa: S607 - the one that a contributor has
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def test_every_count_that_a_test_takes_has_its_full_value() -> None:
    counts = {
        name
        for path in (ROOT / "tests").rglob("*.py")
        for name in COUNT.findall(path.read_text("utf-8"))
        if not name.endswith("_SEED")
    }

    assert counts
    assert counts <= set(re.findall(r"(TOLLHOUSE_\w+)=\d+", commands("test-long")))


def test_every_command_that_measures_is_run() -> None:
    run = commands("bench")

    for name in BENCHES:
        assert re.search(rf"\b{name}\b", run)


@pytest.mark.parametrize("name", BENCHES)
def test_every_command_that_measures_takes_json(name: str) -> None:
    assert 'add_argument("--json"' in (ROOT / "bench" / f"{name}.py").read_text("utf-8")
