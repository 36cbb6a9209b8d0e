"""Edits inside of SQL and Lua that stands in string literals of the source."""

import re
from collections.abc import Callable, Iterator
from typing import Final

from tools.mutants.mutant import Edit

SQL_BEGINS: Final = re.compile(
    rb'^\w*["\']*\s*(?:--[^\n]*\n\s*)*(?:\{\w+\}\s+(FOR|WHERE|ORDER|AND|ON)'
    rb"|SELECT|INSERT|UPDATE|DELETE|WITH|CREATE( OR REPLACE)? FUNCTION|ARRAY\()"
)
LUA_BEGINS: Final = re.compile(rb'^["\']+\s*local ')
_NOT_CODE: Final = re.compile(rb"\{\{|\}\}|\{[^{}]*\}|--[^\n]*|'[^'\n]*'")
_OPERAND: Final = (
    rb"(?:\$\d+|'[^']*'|[\w.]+(?:\([^()]*\))?(?:\[[^\]]*\])?)(?:::\w+(?:\[\])?)?(?!\s*[-+*/(\[])"
)

Replacement = Callable[[re.Match[bytes]], bytes]


def _swap(pairs: dict[bytes, bytes]) -> Replacement:
    return lambda match: match[0].replace(match[1], pairs[match[1]])


def _always(match: re.Match[bytes]) -> bytes:
    """Keep the condition's text, so that its parameters still have a type."""
    return match[1] + b"(" + match[2] + b") IS NOT NULL"


def _without_first(match: re.Match[bytes]) -> bytes:
    return match[0].replace(match[1], b"", 1)


def _one_more(match: re.Match[bytes]) -> bytes:
    return str(int(match[0]) + 1).encode()


_BOUNDARIES: Final = {b"<": b"<=", b"<=": b"<", b">": b">=", b">=": b">"}
_SIGNS: Final = {b"+": b"-", b"-": b"+"}
_ARITHMETIC: Final = re.compile(rb"(?<=\s)([+-])(?=\s)")
_BOUNDARY: Final = re.compile(rb"(?<=\s)(<=|>=|<|>)(?=\s)")
_NUMBER: Final = re.compile(rb"(?<![\w$.\]])(?<!LIMIT )(?<!BY )(?<!, )\d+\b(?!\.\d)")

_SQL: Final[tuple[tuple[str, re.Pattern[bytes], Replacement], ...]] = (
    (
        "sql_drop_condition",
        re.compile(
            rb"((?:\bWHERE|\bAND|\bON|\bOR)\s+)("
            + _OPERAND
            + rb"\s+(?:=|<>|<=|>=|<|>)\s+"
            + _OPERAND
            + rb")"
        ),
        _always,
    ),
    ("sql_boundary", _BOUNDARY, _swap(_BOUNDARIES)),
    (
        "sql_equality",
        re.compile(rb"(?:\bWHERE|\bAND|\bOR|\bON|\bIF|\bWHEN)\s+(?:NOT\s+)?[\w.$\[\]]+\s+(=|<>)\s"),
        _swap({b"=": b"<>", b"<>": b"="}),
    ),
    ("sql_arithmetic", _ARITHMETIC, _swap(_SIGNS)),
    (
        "sql_extreme",
        re.compile(rb"(?i)\b(greatest|least|min|max)\("),
        lambda match: _EXTREMES[match[1].lower()] + b"(",
    ),
    ("sql_order", re.compile(rb"( DESC)\b"), _without_first),
    ("sql_and_or", re.compile(rb"\b(AND|OR)\b"), _swap({b"AND": b"OR", b"OR": b"AND"})),
    ("sql_not", re.compile(rb"(?:\bAND|\bOR|\bWHERE|\bIF|\bWHEN)\s+(NOT\s+)"), _without_first),
    (
        "sql_null",
        re.compile(rb"\b(IS NOT NULL|IS NULL)\b"),
        _swap({b"IS NULL": b"IS NOT NULL", b"IS NOT NULL": b"IS NULL"}),
    ),
    ("sql_number", _NUMBER, _one_more),
    ("sql_lock", re.compile(rb"(\s+FOR (?:NO KEY )?UPDATE\b)"), _without_first),
    ("sql_join", re.compile(rb"\b(LEFT )JOIN\b"), _without_first),
)
_EXTREMES: Final = {b"greatest": b"least", b"least": b"greatest", b"min": b"max", b"max": b"min"}
_LUA: Final[tuple[tuple[str, re.Pattern[bytes], Replacement], ...]] = (
    ("lua_boundary", _BOUNDARY, _swap(_BOUNDARIES)),
    ("lua_equality", re.compile(rb"(?<=\s)(==|~=)(?=\s)"), _swap({b"==": b"~=", b"~=": b"=="})),
    ("lua_arithmetic", _ARITHMETIC, _swap(_SIGNS)),
    (
        "lua_extreme",
        re.compile(rb"math\.(min|max)\("),
        lambda match: b"math." + _EXTREMES[match[1]] + b"(",
    ),
    ("lua_number", _NUMBER, _one_more),
)


def edits(literal: bytes, offset: int) -> Iterator[Edit]:
    """Yield the edits of a string literal with its quotes, or of a statement of a .sql file."""
    table = _SQL if SQL_BEGINS.match(literal) else _LUA if LUA_BEGINS.match(literal) else ()
    if not table:
        return
    hidden = [match.span() for match in _NOT_CODE.finditer(literal)]
    for operator, pattern, replacement in table:
        for match in pattern.finditer(literal):
            if any(start <= match.start() < end for start, end in hidden):
                continue
            if operator == "sql_and_or" and _is_between(literal, match):
                continue
            yield Edit(
                operator=operator,
                start=offset + match.start(),
                end=offset + match.end(),
                replacement=replacement(match),
            )


def _is_between(literal: bytes, match: re.Match[bytes]) -> bool:
    return re.search(rb"\bBETWEEN\s+\S+\s+$", literal[: match.start()]) is not None
