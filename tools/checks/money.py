"""No float touches money: not as a literal, a call, an annotation or the result of `/`."""

import ast
import re
from collections.abc import Iterator

from tools.checks.source import Findings, Source

MONEY_PACKAGES = frozenset({"money", "ledger", "reports"})
MONEY_NAME = re.compile(r"(^|_)(pico|amount|cost|price|credit|balance)(s|usd)?(_|$)", re.IGNORECASE)
AMOUNT = re.compile(r"pico", re.IGNORECASE)
CAMEL_JOINT = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

# What one of these holds is about another value than what surrounds it.
_SEPARATE = (ast.stmt, ast.keyword, ast.excepthandler, ast.match_case)


def check(source: Source) -> Findings:
    """Find floats in modules and functions about money, and beside names of money elsewhere."""
    is_about_money = _is_money_module(source.module)
    inside = {
        id(each)
        for node in (source.nodes if AMOUNT.search(source.text) else ())
        if _is_money_function(node)
        for each in ast.walk(node)
    }
    examined = 0
    for unit in _units(source.tree):
        is_inside = is_about_money or id(unit[0]) in inside
        if is_inside or any(MONEY_NAME.search(name) for name in _names(unit)):
            examined += 1
            yield from (
                source.finding(node, f"{what} near money; money is a whole number of pico-USD")
                for node, what in _floats(unit)
            )
    return examined


def _is_money_module(module: tuple[str, ...]) -> bool:
    is_catalog_price = module[0] == "catalog" and module[-1].startswith(("price", "pricing"))
    return is_catalog_price or not MONEY_PACKAGES.isdisjoint(module)


def _is_money_function(node: ast.AST) -> bool:
    """Whether a function has an amount: as a type, a parameter or a variable."""
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and any(
        AMOUNT.search(each.arg if isinstance(each, ast.arg) else each.id)
        for each in ast.walk(node)
        if isinstance(each, ast.arg | ast.Name)
    )


def _units(tree: ast.Module) -> Iterator[list[ast.AST]]:
    """Split the tree into pieces that are each about one value: a statement, an argument."""
    beginnings: list[list[ast.AST]] = [[tree]]
    while beginnings:
        unit: list[ast.AST] = []
        pending = beginnings.pop()
        while pending:
            node = pending.pop()
            unit.append(node)
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.arguments):
                    beginnings += _parameters(child)
                elif isinstance(child, _SEPARATE):
                    beginnings.append([child])
                else:
                    pending.append(child)
        yield unit


def _parameters(arguments: ast.arguments) -> Iterator[list[ast.AST]]:
    """Each parameter together with its default; the syntax tree keeps them apart."""
    positional = [*arguments.posonlyargs, *arguments.args]
    missing = len(positional) - len(arguments.defaults)
    defaults = [*[None] * missing, *arguments.defaults, *arguments.kw_defaults]
    for parameter, default in zip([*positional, *arguments.kwonlyargs], defaults, strict=True):
        yield [parameter] if default is None else [parameter, default]
    for parameter in (arguments.vararg, arguments.kwarg):
        if parameter is not None:
            yield [parameter]


def _names(unit: list[ast.AST]) -> Iterator[str]:
    for node in unit:
        match node:
            case (
                ast.Name(id=name)
                | ast.Attribute(attr=name)
                | ast.arg(arg=name)
                | ast.keyword(arg=str(name))
                | ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
            ):
                yield CAMEL_JOINT.sub("_", name)
            case ast.Constant(value=str(key)) if key.isidentifier():
                yield key
            case _:
                pass


def _floats(unit: list[ast.AST]) -> Iterator[tuple[ast.stmt | ast.expr, str]]:
    for node in unit:
        match node:
            case ast.Constant(value=float()):
                yield node, "a float literal"
            case ast.Name(id="float"):
                yield node, "`float`"
            case ast.BinOp(op=ast.Div(), right=right) if not _is_text(right):
                yield node, "a true division"
            case ast.AugAssign(op=ast.Div(), value=value) if not _is_text(value):
                yield node, "a true division"
            case _:
                pass


def _is_text(node: ast.expr) -> bool:
    """Whether `/` joins a path here."""
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
