"""What a check reads, and what it says."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self


@dataclass(frozen=True, kw_only=True, order=True, slots=True)
class Finding:
    """One broken rule, at the line where it has to be mended."""

    path: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """One parsed file. `path` is relative to the repository, with slashes."""

    path: str
    text: str
    tree: ast.Module

    @classmethod
    def parse(cls, path: str, text: str) -> Self:
        """Read a file's text as if it stood at `path`."""
        return cls(path=path, text=text, tree=ast.parse(text, filename=path))

    @property
    def module(self) -> tuple[str, ...]:
        """The path below the package: `("api", "errors")` for src/tollhouse/api/errors.py."""
        return Path(self.path).with_suffix("").parts[2:]

    def finding(
        self, node: ast.stmt | ast.expr | ast.arg | ast.excepthandler | ast.Module, message: str
    ) -> Finding:
        """A finding where `node` begins."""
        line = 1 if isinstance(node, ast.Module) else node.lineno
        return Finding(path=self.path, line=line, message=message)


def read(root: Path) -> Iterator[Source]:
    """Every Python file of the package, in a stable order."""
    for path in sorted((root / "src" / "tollhouse").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        yield Source.parse(path.relative_to(root).as_posix(), text)
