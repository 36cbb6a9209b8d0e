"""Refuse private names of dependencies, but for those that are listed with a pin and a reason."""

import ast
from collections.abc import Iterator, Sequence

from tools.checks.source import Finding, Source

LISTED = {
    ("src/tollhouse/observability/buffered_metrics.py", "_metric_init"): (
        "prometheus-client >=0.26,<0.27 makes each labelled child by it, and has no other hook: a"
        " wrapper around children would take a lookup more for each of a request's twelve values"
    ),
}
_PUBLIC = frozenset({"_asdict", "_fields", "_make", "_replace"})
"""Names of `NamedTuple`, which are public."""
_OWN = frozenset({"self", "cls"})


def check(sources: Sequence[Source]) -> Iterator[Finding]:
    """Find private names that are not listed, and entries of the list that nothing uses."""
    read = {source.path for source in sources}
    unused = {entry for entry in LISTED if entry[0] in read}
    for source in sources:
        if source.is_sql:
            continue
        for node in _foreign(source.tree):
            if (source.path, node.attr) not in LISTED:
                message = f"{node.attr} is private: use a public name, or list it with its reason"
                yield source.finding(node, message)
            unused.discard((source.path, node.attr))
    for path, name in sorted(unused):
        yield Finding(path=path, line=1, message=f"{name} is not used any more: take it off")


def _foreign(tree: ast.Module) -> Iterator[ast.Attribute]:
    """Yield private names of objects that the module does not define."""
    nodes = list(ast.walk(tree))
    ours = {node.attr for node in nodes if isinstance(node, ast.Attribute) and _is_own(node.value)}
    bases = {
        id(child): {base.id for base in node.bases if isinstance(base, ast.Name)}
        for node in nodes
        if isinstance(node, ast.ClassDef)
        for child in ast.walk(node)
    }
    theirs = {
        name.asname or name.name
        for node in nodes
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] != "tollhouse"
        for name in node.names
    }
    for node in nodes:
        if not isinstance(node, ast.Attribute) or node.attr in _PUBLIC or _is_own(node.value):
            continue
        if not node.attr.startswith("_") or node.attr.startswith("__"):
            continue
        is_inherited = isinstance(node.value, ast.Call) and ast.unparse(node.value) == "super()"
        if (bases.get(id(node), set()) & theirs) if is_inherited else (node.attr not in ours):
            yield node


def _is_own(value: ast.expr) -> bool:
    return isinstance(value, ast.Name) and value.id in _OWN
