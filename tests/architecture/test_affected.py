"""A change is given to the tests that run its lines, or that import its module."""

from pathlib import Path

import msgspec
import pytest

from tools.affected import changes
from tools.affected.changes import Hunk
from tools.affected.imports import Imports
from tools.mutants.coverage_map import CoverageMap
from tools.mutants.record import Record, RecordedFile, digest

RULES = "src/tollhouse/ledger/rules.py"


def test_a_diff_is_read_by_file() -> None:
    diff = f"diff --git a/{RULES} b/{RULES}\n@@ -3,2 +3 @@ x\n-a\n@@ -9,0 +9,3 @@\n+@@ -1 +1 @@\n"

    assert changes.parse(f"{diff}diff --git a/a b/a\n") == {
        RULES: [
            Hunk(old=range(3, 5), new=range(3, 4)),
            Hunk(old=range(10, 10), new=range(9, 12)),
        ],
        "a": [],
    }


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        (Hunk(old=range(5, 6), new=range(5, 6)), {5}),
        (Hunk(old=range(12, 13), new=range(12, 15)), {9, 10, 11}),
        (Hunk(old=range(30, 31), new=range(30, 31)), {27}),
        (Hunk(old=range(22, 24), new=range(22, 22)), {18, 19}),
    ],
)
def test_lines_are_found_in_the_text_that_was_recorded(changed: Hunk, expected: set[int]) -> None:
    since_record = [Hunk(old=range(10, 10), new=range(10, 13))]

    assert changes.old_lines(since_record, [changed]) == expected


def test_what_runs_at_import_is_no_function_and_no_import() -> None:
    text = (
        'import a\n\nB = (\n    1,\n)\n\nclass C:\n    """D."""\n\n    e: int\n    def f(self): ...'
    )

    assert changes.run_at_import(text) == {3, 4, 5, 7, 10}


def test_a_statement_is_told_from_its_function(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("def f(b):\n    if b:\n        return g(\n 1\n )\n    h()\n", "utf-8")
    lines = {2: [0, 1], 3: [0], 6: [1]}
    tests = [("test_a.py::test_returning", 0.1), ("test_a.py::test_passing", 0.1)]
    recorded = Record(tests=tests, files={"a.py": RecordedFile(digest=digest(path), lines=lines)})
    (tmp_path / "1.json").write_bytes(msgspec.json.encode(recorded))
    covering = CoverageMap(tmp_path, tmp_path)

    assert covering.running_lines("a.py", [4]) == {"test_a.py::test_returning"}
    assert covering.running_lines("a.py", [1]) == {name for name, _ in tests}
    assert covering.running_lines("a.py", [7]) == set()


def test_tests_are_found_by_folders_and_imports(tmp_path: Path) -> None:
    for path, text in {
        RULES: "",
        "src/tollhouse/keys/rules.py": "",
        "src/tollhouse/keys/store.py": "",
        "tests/ledger/test_near.py": "",
        "tests/cli/helper.py": "from tollhouse.ledger import (\n    rules,\n)\n",
        "tests/cli/test_far.py": "from tests.cli import helper\n",
        "tests/support/gateway.py": "from tollhouse.ledger import rules\n",
        "tests/api/test_gateway.py": "from tests.support import gateway\n",
        "tests/identity/test_keys.py": "import tollhouse.keys.rules\n",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    imports = Imports(tmp_path)

    assert imports.tests_about(RULES) == {"tests/ledger/test_near.py", "tests/cli/test_far.py"}
    assert imports.tests_about("src/tollhouse/keys/store.py") == {"tests/identity/test_keys.py"}
    assert imports.tests_about("tests/support/gateway.py") == {"tests/api/test_gateway.py"}
    assert imports.tests_about("tests/cli/data/a.json") == {"tests/cli/test_far.py"}
