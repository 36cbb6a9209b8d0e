"""What is mutated, and which folders of tests speak about it."""

import ast
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from tools.checks import sql
from tools.checks.source import Source

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

_DATABASE: Final = "database functions"
_GROUPS: Final = {
    "ledger": (("ledger",), ("simulation", "ledger", "faults")),
    "limits": (("limits",), ("simulation", "limits")),
    "keys": (("keys",), ("identity",)),
    "policies": (
        ("policies", "decisions", "evaluation"),
        ("simulation", "policies", "judge", "evaluation", "decisions"),
    ),
    "inference": (
        ("inference",),
        ("simulation", "inference", "evaluation", "responses", "faults"),
    ),
    "serving": (("serving",), ("serving", "api")),
    "backends": (("backends",), ("backends", "inference")),
    "contract": (("contract",), ("contract", "api")),
    "api": (("api",), ("api", "identity", "inference")),
    "administration": (
        (
            *("manage", "projects", "organizations", "reports", "alerts", "activity", "catalog"),
            "console",
        ),
        ("tenancy", "activity", "alerts", "catalog", "reports", "identity"),
    ),
    "command line": (("cli",), ("cli",)),
    _DATABASE: ((), ("simulation", "ledger", "reports", "faults")),
}
"""Packages, and the folders of their tests. A package that is not named is a group by itself."""
_NOT_MUTATED: Final = frozenset(
    {
        *("app", "archive", "base", "console_access", "leased_jobs", "observability", "pools"),
        *("sessions", "settings", "storage"),
    }
)
"""Packages and modules, but for their SQL."""
_LEFT_OUT: Final = frozenset({"__init__.py", "errors.py"})
"""Errors are mostly sentences."""


def paths(root: Path) -> Iterator[str]:
    """Yield the files that are mutated, relative to the root."""
    found = (path.relative_to(root).as_posix() for path in sorted((root / PACKAGE).rglob("*.*")))
    return filter(is_mutated, found)


def is_mutated(path: str) -> bool:
    """Return whether a file is mutated."""
    if Path(path).suffix not in {".py", ".sql"} or Path(path).name in _LEFT_OUT:
        return False
    return _is_database(path) or _package(path) not in _NOT_MUTATED


def group(path: str) -> str:
    """Return the group that a file is in. Samples take the same share of each group."""
    if _is_database(path):
        return _DATABASE
    package = _package(path)
    return next((name for name, (packages, _) in _GROUPS.items() if package in packages), package)


def _is_database(path: str) -> bool:
    return path.endswith(".sql")


def _package(path: str) -> str:
    return Path(path).with_suffix("").relative_to(PACKAGE).parts[0]


def examined(sources: Iterable[Source]) -> Counter[str]:
    """Return how many functions and statements of SQL each group has."""
    counts = Counter[str]()
    for source in sources:
        if is_mutated(source.path):
            functions = sum(
                isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) for node in source.nodes
            )
            counts[group(source.path)] += functions + len(sql.statements(source))
    return counts


def caller(path: str) -> str | None:
    """Return the file that calls most functions of the database."""
    return f"{PACKAGE}/ledger/batches.py" if _is_database(path) else None


def folders(path: str) -> tuple[str, ...]:
    """Return the folders of tests to run where no recorded test runs a line."""
    _, folders = _GROUPS.get(group(path), ((), TESTS))
    return tuple(f"tests/{folder}/" for folder in folders)


def git(*arguments: str) -> str:
    """Return what git says about the repository."""
    command = ("git", *arguments)
    said = subprocess.run(command, cwd=ROOT, check=True, capture_output=True)  # noqa: S603 - nothing in it comes from outside
    return said.stdout.decode(errors="replace")
