"""Which tests run which line, and which of them a mutant is given to."""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import Final

import msgspec

from tools.mutants import targets
from tools.mutants.mutant import Mutant
from tools.mutants.record import Record, digest

LONG_SECONDS: Final = 3.0


class CoverageMap:
    """The records of all processes."""

    def __init__(self, folder: Path, root: Path) -> None:
        self._root = root
        self.seconds: dict[str, float] = {}
        self._lines: defaultdict[str, defaultdict[int, set[str]]] = defaultdict(
            lambda: defaultdict(set)
        )
        for path in sorted(folder.glob("*.json")):
            self._add(msgspec.json.decode(path.read_bytes(), type=Record))

    def choose(self, mutant: Mutant, seconds_max: float) -> list[str]:
        """Return the tests for a mutant, the fastest of each file first.

        Files take turns, those of the mutant's own folders first, so that many kinds of tests
        have a look at it in the given time. Long tests come last.
        """
        found = self._running(mutant) or self._in_folders(mutant.path)
        chosen = self.fastest(found, targets.folders(mutant.path), seconds_max)
        return sorted(chosen, key=lambda test: self.seconds[test] > LONG_SECONDS)

    def fastest(
        self, tests: Iterable[str], own: tuple[str, ...], seconds_max: float
    ) -> Iterator[str]:
        """Yield the fastest tests of each file in turns, files below `own` first."""
        left = seconds_max
        for test in self._in_turns(tests, own):
            if self.seconds[test] <= left:
                yield test
                left -= self.seconds[test]

    def running_file(self, path: str) -> set[str]:
        """Return the tests that run any line of a file."""
        return set[str]().union(*self._lines[path].values())

    def running_lines(self, path: str, lines: Iterable[int]) -> set[str]:
        """Return the tests that run the statements of lines, or else the functions of lines."""
        recorded = self._lines[path]
        tests: set[str] = set()
        for line in lines:
            around = self._statement(path, line) or _function(self._root / path, line)
            tests.update(*(recorded[one] for one in around if one in recorded))
        return tests

    def _add(self, record: Record) -> None:
        names = [name for name, _ in record.tests]
        self.seconds |= dict(record.tests)
        for path, file in record.files.items():
            if not (self._root / path).exists() or digest(self._root / path) != file.digest:
                continue
            # A module runs once, in the test that happens to import it first.
            for line in file.lines.keys() & _lines_of_functions(self._root / path):
                self._lines[path][line] |= {names[number] for number in file.lines[line]}

    def _running(self, mutant: Mutant) -> list[str]:
        """Return the tests that run the mutant's lines, its constant or its SQL function."""
        recorded = self._lines[mutant.path]
        tests: set[str] = set()
        mutated = range(mutant.line, mutant.last_line + 1)
        for line in self._statement(mutant.path, mutant.line) or mutated:
            tests |= recorded.get(line, set())
        if not tests:
            for path, line in _uses(self._root, mutant.function.partition(".")[0]):
                tests |= self._lines[path].get(line, set())
        caller = targets.caller(mutant.path)
        if not tests and caller is not None:
            tests.update(*self._lines[caller].values())
        return sorted(tests)

    def _statement(self, path: str, line: int) -> range | None:
        """Return the lines of the innermost statement around a line that is recorded."""
        recorded = self._lines[path]
        for first, last in _statements(self._root / path, line):
            if any(one in recorded for one in range(first, last + 1)):
                return range(first, last + 1)
        return None

    def _in_folders(self, path: str) -> list[str]:
        return [test for test in sorted(self.seconds) if test.startswith(targets.folders(path))]

    def _in_turns(self, tests: Iterable[str], own: tuple[str, ...]) -> Iterator[str]:
        by_file: defaultdict[str, list[str]] = defaultdict(list)
        for test in sorted(
            tests, key=lambda test: (not test.startswith(own), self.seconds[test], test)
        ):
            by_file[test.partition("::")[0]].append(test)
        for row in zip_longest(*by_file.values()):
            yield from (test for test in row if test is not None)


def _nodes(path: Path) -> Iterator[ast.AST]:
    """Yield the nodes of a file of Python. Lines of SQL are not recorded."""
    return iter(()) if path.suffix == ".sql" else ast.walk(ast.parse(path.read_bytes()))


@cache
def _statements(path: Path, line: int) -> tuple[tuple[int, int], ...]:
    """Return first and last lines of the statements around a line, the innermost first.

    A statement with a body counts with its head alone.
    """
    found = [
        (node.lineno, _head_end(node))
        for node in _nodes(path)
        if isinstance(node, ast.stmt) and node.lineno <= line <= _head_end(node)
    ]
    return tuple(sorted(found, key=lambda span: span[1] - span[0]))


def _head_end(node: ast.stmt) -> int:
    body: list[ast.stmt] | None = getattr(node, "body", None)
    return max(node.lineno, body[0].lineno - 1) if body else node.end_lineno or node.lineno


@cache
def _lines_of_functions(path: Path) -> frozenset[int]:
    return frozenset(
        line
        for node in _nodes(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for line in range(node.body[0].lineno, (node.end_lineno or node.lineno) + 1)
    )


def _function(path: Path, line: int) -> range:
    """Return the lines of the innermost function around a line, none outside of all."""
    found = [
        range(min(one.lineno for one in (node, *node.decorator_list)), (node.end_lineno or 0) + 1)
        for node in _nodes(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    return min((one for one in found if line in one), key=len, default=range(0))


@cache
def _uses(root: Path, name: str) -> tuple[tuple[str, int], ...]:
    """Return the places in the package that mention a name of a module."""
    return tuple(_mentions(sorted((root / targets.PACKAGE).rglob("*.py")), root, name))


def _mentions(paths: Iterable[Path], root: Path, name: str) -> Iterator[tuple[str, int]]:
    for path in paths:
        text = path.read_text(encoding="utf-8")
        if name not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            match node:
                case ast.Name(id=found) | ast.Attribute(attr=found) if found == name:
                    yield path.relative_to(root).as_posix(), node.lineno
                case _:
                    pass
