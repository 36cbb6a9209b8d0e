"""A handler changes something only after its caller's key was read again."""

import ast
from collections.abc import Iterator

from tools.checks.source import Finding, Source

HANDLERS = frozenset({"api", "manage"})
ALLOWED = ("api", "admin_database")
MESSAGE = "use `AdminDatabase.mutation_by(call)`, which reads the caller's key again"


def check(source: Source) -> Iterator[Finding]:
    """Find handlers that open a mutation of the database themselves."""
    if source.module[0] not in HANDLERS or source.module == ALLOWED:
        return
    for node in ast.walk(source.tree):
        match node:
            case ast.Call(func=ast.Attribute(attr="mutation")):
                yield source.finding(node, MESSAGE)
            case _:
                pass
