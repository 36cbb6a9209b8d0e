"""What is mutated, and which folders of tests speak about it."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PACKAGE: Final = "src/tollhouse"
TESTS: Final = (
    *("simulation", "ledger", "limits", "policies", "judge", "decisions", "identity", "reports"),
    *("inference", "evaluation", "responses", "refusals", "faults", "cli", "serving", "backends"),
    *("contract", "api", "activity", "alerts", "catalog", "tenancy"),
)
"""The folders whose tests are recorded."""
NOT_RECORDED: Final = ("**/test_bench*.py", "**/test_real_*.py")
"""These tests take long and run little of their own process."""

_MIGRATIONS: Final = f"{PACKAGE}/storage/migrations"
_GROUPS: Final = {
    "ledger": (f"{PACKAGE}/ledger/*.py",),
    "ledger functions": (f"{_MIGRATIONS}/ledger_*.py",),
    "limits": (f"{PACKAGE}/limits/*.py",),
    "keys": (f"{PACKAGE}/keys/*.py",),
    "policies": (
        *(f"{PACKAGE}/{name}/*.py" for name in ("policies", "decisions")),
        f"{PACKAGE}/evaluation/**/*.py",
    ),
    "inference": (f"{PACKAGE}/inference/**/*.py",),
    "serving": (f"{PACKAGE}/serving/*.py",),
    "backends": (f"{PACKAGE}/backends/*.py",),
    "contract": (f"{PACKAGE}/contract/*.py",),
    "api": (f"{PACKAGE}/api/**/*.py",),
    "administration": tuple(
        f"{PACKAGE}/{name}/*.py"
        for name in (
            *("manage", "projects", "organizations", "reports", "alerts", "activity", "catalog"),
            "console",
        )
    ),
    "command line": (f"{PACKAGE}/cli/**/*.py",),
}
_FOLDERS: Final = {
    "ledger": ("simulation", "ledger", "faults"),
    "ledger functions": ("simulation", "ledger", "reports", "faults"),
    "limits": ("simulation", "limits"),
    "keys": ("identity",),
    "policies": ("simulation", "policies", "judge", "evaluation", "decisions"),
    "inference": ("simulation", "inference", "evaluation", "responses", "faults"),
    "serving": ("serving", "api"),
    "backends": ("backends", "inference"),
    "contract": ("contract", "api"),
    "api": ("api", "identity", "inference"),
    "administration": ("tenancy", "activity", "alerts", "catalog", "reports", "identity"),
    "command line": ("cli",),
}
_LEFT_OUT: Final = frozenset({"__init__.py", "errors.py"})
"""Errors are mostly sentences."""
SUPERSEDED: Final = {
    f"{_MIGRATIONS}/ledger_functions.py": frozenset(
        {"LOOK_UP_RETRIED", "SETTLE", "_USE", "_USED", "_ADD_USE"}
    ),
    f"{_MIGRATIONS}/ledger_helpers.py": frozenset({"MAKE_PARTITION", "SETTLE_MIXED"}),
}
"""Functions of old revisions, which a later revision replaces."""


def paths(root: Path) -> Iterator[str]:
    """Yield the files that are mutated, relative to the root."""
    for patterns in _GROUPS.values():
        for pattern in patterns:
            for path in sorted(root.glob(pattern)):
                if path.name not in _LEFT_OUT:
                    yield path.relative_to(root).as_posix()


def group(path: str) -> str:
    """Return the group that a file is in. Samples take the same share of each group."""
    for name, patterns in _GROUPS.items():
        if any(Path(path).match(pattern.replace("**/", "")) for pattern in patterns) or any(
            path.startswith(pattern.partition("**")[0]) for pattern in patterns if "**" in pattern
        ):
            return name
    raise LookupError(path)


def caller(path: str) -> str | None:
    """Return the file that calls the SQL functions of a migration."""
    return f"{PACKAGE}/ledger/batches.py" if path.startswith(_MIGRATIONS) else None


def folders(path: str) -> tuple[str, ...]:
    """Return the folders of tests to run where no recorded test runs a line."""
    return tuple(f"tests/{folder}/" for folder in _FOLDERS[group(path)])


def git(*arguments: str) -> str:
    """Return what git says about the repository."""
    command = ("git", *arguments)
    said = subprocess.run(command, cwd=ROOT, check=True, capture_output=True)  # noqa: S603 - nothing in it comes from outside
    return said.stdout.decode(errors="replace")
