"""Which lines of which files changed, by what git says."""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from tools.mutants import targets

_DIFF: Final = ("diff", "--unified=0", "--no-renames", "--no-ext-diff", "--no-color")
_PREFIXES: Final = ("--src-prefix=a/", "--dst-prefix=b/")
_HUNK: Final = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


@dataclass(frozen=True, kw_only=True, slots=True)
class Hunk:
    """Lines that became others. An empty range stands before its first line."""

    old: range
    new: range


Changes = dict[str, list[Hunk]]


def since(commit: str) -> Changes:
    """Return what differs between a commit and the files as they are now."""
    found = parse(targets.git("-c", "core.quotePath=false", *_DIFF, *_PREFIXES, commit))
    for name in targets.git("ls-files", "-z", "--others", "--exclude-standard").split("\0"):
        if name:
            lines = len((targets.ROOT / name).read_bytes().splitlines())
            found[name] = [Hunk(old=range(1, 1), new=range(1, lines + 1))]
    return found


def parse(diff: str) -> Changes:
    """Return the hunks of each file of a diff without context."""
    found: Changes = {}
    hunks: list[Hunk] = []
    for line in diff.split("\n"):
        if line.startswith("diff --git "):
            names = line.removeprefix("diff --git ")
            hunks = found[names[len("a/") : len(names) // 2]] = []
        elif match := _HUNK.match(line):
            hunks.append(Hunk(old=_range(match[1], match[2]), new=_range(match[3], match[4])))
    return found


def _range(first: str, count: str | None) -> range:
    lines = 1 if count is None else int(count)
    start = int(first) if lines else int(first) + 1
    return range(start, start + lines)


def old_lines(recorded: Sequence[Hunk], changed: Sequence[Hunk]) -> set[int]:
    """Return the lines of a recorded text that changed lines of the present text come from.

    `recorded` leads from the recorded text to the present one. The lines before and after what was
    added count, and those around what was removed.
    """
    found: set[int] = set()
    for hunk in changed:
        touched = [
            one
            for one in recorded
            if one.new.start <= hunk.new.stop and hunk.new.start <= one.new.stop
        ]
        found.update(*(_or_around(one.old) for one in touched))
        same = set(_or_around(hunk.new)).difference(*(one.new for one in touched))
        found |= {line - _growth(recorded, line) for line in same}
    return found


def _or_around(lines: range) -> range:
    return lines or range(lines.start - 1, lines.start + 1)


def _growth(hunks: Sequence[Hunk], line: int) -> int:
    return sum(len(hunk.new) - len(hunk.old) for hunk in hunks if hunk.new.start <= line)


def run_at_import(text: str) -> set[int]:
    """Return the lines that no test runs by itself: those of modules and classes, no imports."""
    return set(_at_import(ast.parse(text).body))


def _at_import(body: Sequence[ast.stmt]) -> Iterator[int]:
    for node in body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Import() | ast.ImportFrom():
                pass
            case ast.Expr(value=ast.Constant()):
                pass
            case ast.ClassDef():
                first = min(one.lineno for one in (node, *node.decorator_list))
                yield from range(first, node.body[0].lineno)
                yield from _at_import(node.body)
            case _:
                yield from range(node.lineno, (node.end_lineno or node.lineno) + 1)
