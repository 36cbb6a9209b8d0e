"""Every public function of a store says whose rows it touches."""

import ast
import re
from collections.abc import Iterable, Iterator

from tools.checks.source import Finding, Source

IDENTIFIER = "OrganizationId"
EXEMPTION = re.compile(r"#\s*all organizations:\s*\S")
MESSAGE = (
    "`{name}` must take organization_id: OrganizationId, or a type that holds it, right after the"
    " transaction; else say `# all organizations: <reason>` on its def line"
)

Function = ast.FunctionDef | ast.AsyncFunctionDef


def carriers(sources: Iterable[Source]) -> frozenset[str]:
    """Names of the classes that have a field of type OrganizationId."""
    return frozenset(
        node.name
        for source in sources
        for node in ast.walk(source.tree)
        if isinstance(node, ast.ClassDef) and any(map(_holds_organization, node.body))
    )


def check(source: Source, carrying: frozenset[str]) -> Iterator[Finding]:
    """Find public store functions that could touch rows of any organization."""
    if source.module[-1] != "store":
        return
    lines = source.text.splitlines()
    for node in source.tree.body:
        if not isinstance(node, Function) or node.name.startswith("_"):
            continue
        if not (_is_scoped(node, carrying) or EXEMPTION.search(lines[node.lineno - 1])):
            yield source.finding(node, MESSAGE.format(name=node.name))


def _holds_organization(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.AnnAssign) and _is_identifier(statement.annotation)


def _is_identifier(annotation: ast.expr | None) -> bool:
    return isinstance(annotation, ast.Name) and annotation.id == IDENTIFIER


def _is_scoped(function: Function, carrying: frozenset[str]) -> bool:
    """Look at the first parameter after the transaction, which comes first."""
    parameters = (*function.args.args, *function.args.kwonlyargs)
    if len(parameters) < 2:  # noqa: PLR2004 - the transaction and one more
        return False
    scope = parameters[1]
    if scope.arg == "organization_id":
        return _is_identifier(scope.annotation)
    return scope.annotation is not None and any(
        isinstance(node, ast.Name) and node.id in carrying for node in ast.walk(scope.annotation)
    )
