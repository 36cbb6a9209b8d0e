"""Bugs that were planted by hand, each with the tests that must see it.

A patch begins with a sentence that says what the bug is, and a line `Seen by: ` for each test.
`git apply` plants one in the tree itself.
"""

import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tools.mutants import targets
from tools.mutants.mutant import Edit, Mutant
from tools.mutants.trees import Result, Status, Tree, seconds_for

FOLDER: Final = Path(__file__).parent / "planted"
TEST_SECONDS: Final = 12.0
_SEEN_BY: Final = re.compile(r"^Seen by: (.+)$", re.MULTILINE)
_PATH: Final = re.compile(r"^\+\+\+ b/(.+)$", re.MULTILINE)
_LINE: Final = re.compile(r"^@@ -(\d+)", re.MULTILINE)
_REMOVED: Final = re.compile(r"^-(?!--) *(.*)$", re.MULTILINE)
_ADDED: Final = re.compile(r"^\+(?!\+\+) *(.*)$", re.MULTILINE)


def mutants() -> list[Mutant]:
    """Return the patches as mutants. Ends the process with the name of one that does not apply."""
    return [_mutant(patch) for patch in sorted(FOLDER.glob("*.patch"))]


def tests_of(mutant: Mutant) -> list[str]:
    """Return the tests that must see a bug."""
    return _SEEN_BY.findall(_patch(mutant.edit.operator).read_text(encoding="utf-8"))


def test(tree: Tree, mutant: Mutant) -> Result:
    """Run the tests that must see a bug, one by one. It is seen if each of them fails."""
    result = Result(status=Status.UNTESTED, seconds=0)
    with tree.applied(mutant):
        for name in tests_of(mutant):
            result = tree.run([name], seconds_for(TEST_SECONDS))
            if result.killer != name:
                # Also where pytest finds no such test.
                return Result(status=Status.SURVIVED, seconds=result.seconds)
    return result


def _patch(name: str) -> Path:
    return FOLDER / f"{name}.patch"


def _mutant(patch: Path) -> Mutant:
    said = patch.read_text(encoding="utf-8")
    found, line = _PATH.search(said), _LINE.search(said)
    assert found is not None
    assert line is not None
    text = (targets.ROOT / found[1]).read_bytes()
    edit = Edit(
        operator=patch.stem, start=0, end=len(text), replacement=_patched(patch, found[1], text)
    )
    return Mutant(
        path=found[1],
        function=said.partition("\n")[0],
        line=int(line[1]),
        last_line=int(line[1]),
        index=1,
        occurrence=1,
        edit=edit,
        before=" ".join(_REMOVED.findall(said)),
        after=" ".join(_ADDED.findall(said)),
    )


def _patched(patch: Path, path: str, text: bytes) -> bytes:
    with TemporaryDirectory() as name:
        copy = Path(name) / path
        copy.parent.mkdir(parents=True)
        copy.write_bytes(text)
        command = ("git", "apply", str(patch))
        if subprocess.run(command, cwd=name, check=False).returncode:  # noqa: S603 - a command of our own
            sys.exit(f"{patch.relative_to(targets.ROOT)} no longer applies: adapt it to the source")
        return copy.read_bytes()
