"""A fact that a log line is given must be one that the formatter writes, or it is lost."""

import ast
from collections.abc import Iterable, Iterator

from tools.checks.source import Finding, Source

FORMATTER = ("observability", "log")
CONSTANT = "FIELDS"
MESSAGE = "`{name}` is not in observability/log.py FIELDS, so the line would lose it"


def written(sources: Iterable[Source]) -> frozenset[str]:
    """The names that the formatter writes."""
    return frozenset(
        element.value
        for source in sources
        if source.module == FORMATTER
        for node in source.tree.body
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
        and node.target.id == CONSTANT
        and isinstance(node.value, ast.Tuple)
        for element in node.value.elts
        if isinstance(element, ast.Constant) and isinstance(element.value, str)
    )


def check(source: Source, fields: frozenset[str]) -> Iterator[Finding]:
    """Find facts in `extra` that no line would show."""
    for node in ast.walk(source.tree):
        if (
            isinstance(node, ast.keyword)
            and node.arg == "extra"
            and isinstance(node.value, ast.Dict)
        ):
            for key in node.value.keys:
                if isinstance(key, ast.Constant) and key.value not in fields:
                    yield source.finding(key, MESSAGE.format(name=key.value))
