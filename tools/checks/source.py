"""What a check reads, and what it says."""

import ast
import re
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self, TypeVar

Examined = TypeVar("Examined")
SUFFIXES = (".py", ".sql")
_STATEMENT = re.compile(
    r"--[^\n]*|/\*.*?\*/|'[^']*'|(?P<quote>\$\w*\$).*?(?P=quote)|(?P<end>;)", re.DOTALL
)


@dataclass(frozen=True, kw_only=True, order=True, slots=True)
class Finding:
    """One broken rule, at the line where it has to be mended."""

    path: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


Findings = Generator[Finding, None, int]
"""What a check finds. It returns how many places it examined."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """One parsed file. `path` is relative to the repository, with slashes.

    A file of SQL is a module that has its statements as literals.
    """

    path: str
    text: str
    tree: ast.Module

    @classmethod
    def parse(cls, path: str, text: str) -> Self:
        """Read a file's text as if it stood at `path`."""
        is_sql = path.endswith(".sql")
        tree = _module_of(text) if is_sql else ast.parse(text, filename=path)
        return cls(path=path, text=text, tree=tree)

    @property
    def module(self) -> tuple[str, ...]:
        """The path below the package: `("api", "errors")` for src/tollhouse/api/errors.py."""
        return Path(self.path).with_suffix("").parts[2:]

    @property
    def is_sql(self) -> bool:
        """Whether it is a file of SQL."""
        return self.path.endswith(".sql")

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All nodes of the tree."""
        return list(ast.walk(self.tree))

    @cached_property
    def lines(self) -> list[str]:
        """The lines of the text."""
        return self.text.splitlines()

    def finding(
        self, node: ast.stmt | ast.expr | ast.arg | ast.excepthandler | ast.Module, message: str
    ) -> Finding:
        """A finding where `node` begins."""
        line = 1 if isinstance(node, ast.Module) else node.lineno
        return Finding(path=self.path, line=line, message=message)


def read(root: Path) -> Iterator[Source]:
    """Every file of Python and SQL of the package, in a stable order."""
    for path in sorted((root / "src" / "tollhouse").rglob("*")):
        if path.suffix in SUFFIXES:
            text = path.read_text(encoding="utf-8")
            yield Source.parse(path.relative_to(root).as_posix(), text)


def drain(results: Generator[Finding, None, Examined]) -> tuple[list[Finding], Examined]:
    """Return what a check found, and what it says that it examined."""
    found: list[Finding] = []
    while True:
        try:
            found.append(next(results))
        except StopIteration as end:
            return found, end.value


def split(sql: str) -> Iterator[tuple[int, str]]:
    """Yield the statements of a text of SQL, each with its offset."""
    start = 0
    for end in (*(match.end() for match in _STATEMENT.finditer(sql) if match["end"]), len(sql)):
        if statement := sql[start:end].strip():
            yield sql.index(statement, start), statement
        start = end


def _module_of(sql: str) -> ast.Module:
    """Return a module whose body are the statements of a text of SQL."""
    body: list[ast.stmt] = []
    for offset, statement in split(sql):
        line = sql.count("\n", 0, offset) + 1
        literal = ast.Constant(value=statement, lineno=line, col_offset=0)
        body.append(ast.Expr(value=literal, lineno=line, col_offset=0))
    return ast.Module(body=body, type_ignores=[])
