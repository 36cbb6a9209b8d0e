"""Which files of tests import a module, or speak about a file."""

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final

from tools.mutants.targets import PACKAGE

FOLDERS: Final = ("src", "tests", "tools", "bench")
_IMPORT: Final = re.compile(
    r"^\s*(?:from ([\w.]+) import (\([^)]*\)|.*)|import ([\w.]+))", re.MULTILINE
)
_UNIVERSAL: Final = ("tests/support/", "tests/conftest.py")
"""They start whole gateways: a test that imports them is not about all that they import."""


class Imports:
    """The Python files of a tree, and what imports what."""

    def __init__(self, root: Path) -> None:
        self._texts = {
            path.relative_to(root).as_posix(): path.read_text(encoding="utf-8")
            for folder in FOLDERS
            for path in sorted((root / folder).rglob("*.py"))
        }
        self._tests = {path for path in self._texts if is_test(path)}
        self._importers: defaultdict[str, set[str]] = defaultdict(set)
        for path, text in self._texts.items():
            for module in _imported(text):
                self._importers[module].add(path)

    def tests_about(self, path: str) -> set[str]:
        """Return the files of tests to run when a file changed and nothing else is known."""
        if is_test(path):
            return {path} & self._tests
        if not path.endswith(".py"):
            return self._in_folders(path) | self._naming(PurePosixPath(path).name)
        if not path.startswith(PACKAGE):
            return self._importing(path)
        return self._importing(path) | (self._in_folders(path) or self._about_package(path))

    def text(self, path: str) -> str:
        """Return the text of a file of tests."""
        return self._texts[path]

    def _about_package(self, path: str) -> set[str]:
        """Return what imports other modules of a package without tests of its own, or calls it."""
        package, _, name = _module(path).rpartition(".")
        found = self._naming(f"/{name}") or self._naming(name)
        found |= {test for test in self._tests if name.removesuffix("s") in test}
        if package != "tollhouse":
            for module in [one for one in self._importers if one.startswith(f"{package}.")]:
                found |= self._importers[module] & self._tests
        for importer in () if found else self._importers[_module(path)]:
            found |= self.tests_about(importer)
        return found

    def _in_folders(self, path: str) -> set[str]:
        """Return the tests in folders that are named like a part of the path."""
        inside = path.removeprefix(f"{PACKAGE}/")
        names = PurePosixPath(inside).with_suffix("").parts if inside != path else ()
        outside = PurePosixPath(path.removeprefix("tests/")).parts[:1]
        folders = tuple(f"tests/{name}/" for name in names or outside)
        return {test for test in self._tests if test.startswith(folders)}

    def _naming(self, name: str) -> set[str]:
        return {test for test in self._tests if name in self._texts[test]}

    def _importing(self, path: str) -> set[str]:
        """Return the tests that import a module, or helpers of theirs that do."""
        seen, waiting = {path}, [path]
        while waiting:
            for importer in self._importers_of(waiting.pop()) - seen:
                is_universal = importer.startswith(_UNIVERSAL) and not path.startswith("tests/")
                if importer.startswith("tests/") and not is_universal:
                    seen.add(importer)
                    waiting.append(importer)
        return seen & self._tests

    def _importers_of(self, path: str) -> set[str]:
        if path.endswith("/conftest.py"):
            folder = path.removesuffix("conftest.py")
            return {test for test in self._tests if test.startswith(folder)}
        return self._importers[_module(path)]


def is_test(path: str) -> bool:
    """Return whether pytest collects a file."""
    return path.startswith("tests/") and PurePosixPath(path).match("test_*.py")


def _module(path: str) -> str:
    return path.removeprefix("src/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _imported(text: str) -> Iterator[str]:
    for source, names, module in _IMPORT.findall(text):
        yield module or source
        for name in re.findall(r"[a-z_]\w*", names):
            yield f"{source}.{name}"
