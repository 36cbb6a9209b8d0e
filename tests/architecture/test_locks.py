"""A lock that does not fit pyproject.toml is found without asking the network."""

import pytest

from tests.architecture.test_make import commands
from tools import locks

LOCK = """\
click==8.5.1 \\
    --hash=sha256:00
    # via tollhouse (pyproject.toml)
colorama==0.4.6 ; sys_platform == 'win32' \\
    --hash=sha256:00
    # via click
uvloop==0.23.0 \\
    --hash=sha256:00
    # via
    #   tollhouse (pyproject.toml)
    #   uvicorn
"""


def test_a_lock_that_holds_what_is_asked_for_passes() -> None:
    assert list(locks.faults_of(LOCK, ["click>=8.5,<9", "uvloop"])) == []


@pytest.mark.parametrize(
    ("lock", "requirements", "fault"),
    [
        (LOCK, ["click", "uvloop", "rich"], "rich is required and not locked"),
        (LOCK, ["click>=9", "uvloop"], "click is locked at 8.5.1, required is >=9"),
        (LOCK, ["click"], "uvloop is locked and no longer required"),
        (f"{LOCK}idna==3.10\n", ["click", "uvloop"], "idna has no hash"),
        (
            f"--index-url https://localhost/simple\n{LOCK}",
            ["click", "uvloop"],
            "names the index that packages come from",
        ),
    ],
)
def test_each_way_not_to_fit_is_found(lock: str, requirements: list[str], fault: str) -> None:
    assert list(locks.faults_of(lock, requirements)) == [fault]


def test_tests_run_on_the_versions_that_are_shipped() -> None:
    assert list(locks.differences(LOCK, LOCK, "runtime.txt")) == []
    assert list(locks.differences(LOCK, LOCK.replace("8.5.1", "8.5.2"), "runtime.txt")) == [
        "click is not locked at 8.5.1 as in requirements/runtime.txt"
    ]


@pytest.mark.parametrize(("asked", "count"), [("click==8.5.1", 0), ("click==8.5.2", 1), ("uv", 1)])
def test_the_wheel_is_built_by_a_locked_version(asked: str, count: int) -> None:
    project = {"build-system": {"requires": [asked]}}
    assert len(list(locks.build_faults(project, LOCK))) == count


@pytest.mark.guarantee("T47")
@pytest.mark.parametrize(
    ("target", "resolvers"),
    [("lock", 3), ("lock-sdks", 1), ("lock-peers", 2), ("lock-clients", 2)],
)
def test_no_version_of_the_last_7_days_is_locked(target: str, resolvers: int) -> None:
    run = commands(target).replace("\\\n", " ")

    assert run.count("uv pip compile") + run.count("npm install") == resolvers
    assert run.count('--exclude-newer "7 days"') == run.count("uv pip compile")
    assert run.count("--min-release-age 7 ") == run.count("npm install")
