"""A fact that a log line is given must be one that the formatter writes, or it is lost."""

import ast
from collections.abc import Iterable

from tools.checks.source import Findings, Source

FORMATTER = "Formatter"
CONSTANT = "FIELDS"
MESSAGE = "`{name}` is not in FIELDS of the log formatter, so the line would lose it"


def written(sources: Iterable[Source]) -> frozenset[str]:
    """The names that a module with a log formatter writes."""
    return frozenset(
        element.value
        for source in sources
        if any(map(_is_formatter, source.tree.body))
        for node in source.tree.body
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
        and node.target.id == CONSTANT
        and isinstance(node.value, ast.Tuple)
        for element in node.value.elts
        if isinstance(element, ast.Constant) and isinstance(element.value, str)
    )


def check(source: Source, fields: frozenset[str]) -> Findings:
    """Find facts in `extra` that no line would show."""
    examined = 0
    for node in source.nodes:
        if (
            isinstance(node, ast.keyword)
            and node.arg == "extra"
            and isinstance(node.value, ast.Dict)
        ):
            examined += 1
            for key in node.value.keys:
                if isinstance(key, ast.Constant) and key.value not in fields:
                    yield source.finding(key, MESSAGE.format(name=key.value))
    return examined


def _is_formatter(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.ClassDef) and any(
        isinstance(base, ast.Attribute) and base.attr == FORMATTER for base in statement.bases
    )
