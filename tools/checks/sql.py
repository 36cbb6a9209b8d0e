"""The SQL of the package: literals and Final constants of Python, and statements of .sql files."""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from tools.checks.source import Source

BEGINS = re.compile(
    r"(?:\s|--[^\n]*\n)*(?P<verb>SELECT|INSERT(?= INTO)|UPDATE|DELETE(?= FROM)|WITH|CREATE|ALTER"
    r"|DROP|MERGE|LOCK|TRUNCATE|COPY|CALL|VALUES|DO)\s",
)
"""Upper case, as everywhere in the package: a sentence that begins with `Select` is none."""
UNKNOWN = "$part"
"""Stands for a part of an f-string that is no constant."""
_USED = re.compile(r"\b(?:FROM|JOIN|INTO|UPDATE|USING)\s+(?:ONLY\s+)?([\w$]+)", re.ASCII)
_TABLE = re.compile(r"\bCREATE (?:UNLOGGED )?TABLE (?:IF NOT EXISTS )?(\w+)\s*\((.*)", re.DOTALL)
FUNCTION = re.compile(r"\bCREATE (?:OR REPLACE )?(?:FUNCTION|PROCEDURE) (\w+)\s*\(")
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, kw_only=True, slots=True)
class Statement:
    """One text of SQL with its node."""

    node: ast.expr
    text: str
    name: str | None
    """The constant that has it."""

    @property
    def is_schema(self) -> bool:
        """Whether it defines something."""
        return self._verb in {"CREATE", "ALTER", "DROP"}

    @property
    def is_query(self) -> bool:
        """Whether a server can prepare it."""
        return self._verb in {"SELECT", "INSERT", "UPDATE", "DELETE", "WITH"}

    @property
    def is_function(self) -> bool:
        """Whether it creates a function."""
        return FUNCTION.search(self.text) is not None

    @property
    def tables(self) -> frozenset[str]:
        """What follows a keyword that a table can follow."""
        return frozenset(_USED.findall(self.text))

    @property
    def _verb(self) -> str:
        found = BEGINS.match(self.text)
        return found["verb"] if found else ""

    @property
    def words(self) -> frozenset[str]:
        """Every name and keyword in it."""
        return frozenset(_WORD.findall(self.text))


@cache
def statements(source: Source) -> tuple[Statement, ...]:
    """Return every text of SQL in a file."""
    return tuple(_statements(source))


def _statements(source: Source) -> Iterator[Statement]:
    texts: dict[str, str] = {}
    inside: set[int] = set()
    for node in source.nodes:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            text = _text(node.value, texts)
            if text is not None and isinstance(target, ast.Name):
                texts[target.id] = text
                inside |= {id(each) for each in ast.walk(node.value)}
                if BEGINS.match(text):
                    yield Statement(node=node.value, text=text, name=target.id)
        elif isinstance(node, ast.JoinedStr | ast.Constant) and id(node) not in inside:
            if isinstance(node, ast.JoinedStr):
                inside |= {id(each) for each in ast.walk(node)}
            text = _text(node, texts)
            if text is not None and BEGINS.match(text):
                yield Statement(node=node, text=text, name=None)


def _text(node: ast.expr, texts: Mapping[str, str]) -> str | None:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(_part(part, texts) for part in parts)
        case ast.BinOp(op=ast.Add(), left=left, right=right):
            ends = [
                texts.get(each.id) if isinstance(each, ast.Name) else _text(each, texts)
                for each in (left, right)
            ]
            return None if None in ends else "".join(filter(None, ends))
        case _:
            return None


def _part(part: ast.expr, texts: Mapping[str, str]) -> str:
    match part:
        case ast.FormattedValue(value=ast.Name(id=name)):
            return texts.get(name, UNKNOWN)
        case ast.Constant(value=str(text)):
            return text
        case _:
            return UNKNOWN


def tables(found: Iterable[Statement]) -> Mapping[str, str]:
    """Return the tables that statements create, with all that follows their name."""
    return {name: body for each in found for name, body in _TABLE.findall(each.text)}


def functions(found: Iterable[Statement]) -> Iterator[tuple[str, Statement]]:
    """Yield the functions that statements create."""
    for each in found:
        yield from ((name, each) for name in FUNCTION.findall(each.text))
