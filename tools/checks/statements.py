"""No SQL is built: a statement stands where it is run, or in a named constant of its module."""

import ast
from collections.abc import Iterator
from typing import TypeGuard

from tools.checks.source import Findings, Source

RUNNERS = frozenset({"fetch_one", "fetch_all", "fetch_value", "execute", "execute_many"})
STREAM_METHOD, STREAM_ARGUMENT = "stream", "rows_at_once"
"""Other objects stream too; only `Transaction.stream` has this argument."""
BUILT_FROM_CONSTANTS = frozenset({("archive", "store"), ("cli", "moves", "tables")})
"""Modules whose streams read a table that cannot be an argument: a partition of a day, or a table
that an organization's export lists. They build or pick the statement from constants."""
MESSAGE = "SQL must be a literal here, or a module's Final constant that is one"


def check(source: Source) -> Findings:
    """Find statements that are formatted, joined, added up or passed in as mere text."""
    constants = _literal_constants(source.tree)
    examined = 0
    for call, passed_on in _runs(source.tree, frozenset()):
        examined += 1
        if _is_stream(call) and source.module in BUILT_FROM_CONSTANTS:
            continue
        statement = _statement(call)
        if not _is_literal(statement, constants | passed_on):
            yield source.finding(call, MESSAGE)
    return examined


def _runs(node: ast.AST, passed_on: frozenset[str]) -> Iterator[tuple[ast.Call, frozenset[str]]]:
    """Calls that run SQL, with the parameters there that the type checker holds to literals."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        passed_on = _literal_parameters(node)
    if is_run(node):
        yield node, passed_on
    for child in ast.iter_child_nodes(node):
        yield from _runs(child, passed_on)


def is_run(node: ast.AST) -> TypeGuard[ast.Call]:
    """Whether a node runs SQL."""
    return isinstance(node, ast.Call) and (
        (isinstance(node.func, ast.Attribute) and node.func.attr in RUNNERS) or _is_stream(node)
    )


def _is_stream(call: ast.Call) -> bool:
    return (
        isinstance(call.func, ast.Attribute)
        and call.func.attr == STREAM_METHOD
        and any(keyword.arg == STREAM_ARGUMENT for keyword in call.keywords)
    )


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
    """Return the Final constants that are literals, or composed of such constants alone."""
    found: set[str] = set()
    for statement in tree.body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=value):
                if _is_final(annotation) and _is_composed(value, found):
                    found.add(name)
            case _:
                pass
    return frozenset(found)


def _is_composed(value: ast.expr | None, constants: set[str]) -> bool:
    match value:
        case ast.Constant(value=str()):
            return True
        case ast.JoinedStr(values=parts):
            return all(_is_part(part, constants) for part in parts)
        case _:
            return False


def _is_part(part: ast.expr, constants: set[str]) -> bool:
    match part:
        case ast.FormattedValue(value=ast.Name(id=name)):
            return name in constants
        case _:
            return isinstance(part, ast.Constant)


def _is_final(annotation: ast.expr) -> bool:
    outer = annotation.value if isinstance(annotation, ast.Subscript) else annotation
    return isinstance(outer, ast.Name) and outer.id == "Final"
