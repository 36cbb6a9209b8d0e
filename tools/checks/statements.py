"""No SQL is built: a statement stands where it is run, or in a named constant of its module."""

import ast
from collections.abc import Iterator

from tools.checks.source import Finding, Source

RUNNERS = frozenset({"fetch_one", "fetch_all", "fetch_value", "execute", "execute_many"})
MESSAGE = "SQL must be a literal here, or a module's Final constant that is one"


def check(source: Source) -> Iterator[Finding]:
    """Find statements that are formatted, joined, added up or passed in as mere text."""
    constants = _literal_constants(source.tree)
    for call, passed_on in _runs(source.tree, frozenset()):
        statement = _statement(call)
        if not _is_literal(statement, constants | passed_on):
            yield source.finding(call, MESSAGE)


def _runs(node: ast.AST, passed_on: frozenset[str]) -> Iterator[tuple[ast.Call, frozenset[str]]]:
    """Calls that run SQL, with the parameters there that the type checker holds to literals."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        passed_on = _literal_parameters(node)
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in RUNNERS
    ):
        yield node, passed_on
    for child in ast.iter_child_nodes(node):
        yield from _runs(child, passed_on)


def _literal_parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> frozenset[str]:
    return frozenset(
        parameter.arg
        for parameter in (*function.args.args, *function.args.kwonlyargs)
        if isinstance(parameter.annotation, ast.Name) and parameter.annotation.id == "LiteralString"
    )


def _statement(call: ast.Call) -> ast.expr | None:
    if call.args:
        return call.args[0]
    return next((keyword.value for keyword in call.keywords if keyword.arg == "sql"), None)


def _is_literal(node: ast.expr | None, literal_names: frozenset[str]) -> bool:
    match node:
        case ast.Constant(value=str()):
            return True
        case ast.Name(id=name):
            return name in literal_names
        case _:
            return False


def _literal_constants(tree: ast.Module) -> frozenset[str]:
    return frozenset(
        statement.target.id
        for statement in tree.body
        if isinstance(statement, ast.AnnAssign)
        and isinstance(statement.target, ast.Name)
        and _is_final(statement.annotation)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _is_final(annotation: ast.expr) -> bool:
    outer = annotation.value if isinstance(annotation, ast.Subscript) else annotation
    return isinstance(outer, ast.Name) and outer.id == "Final"
