"""A failure is caught by its class; only two modules catch whatever comes."""

import ast

from tools.checks.source import Findings, Source

LAST_RESORTS = frozenset({("api", "edge"), ("base", "tasks")})
MESSAGE = "catch the class of failure that you can handle; only {places} catch all"
_PLACES = " and ".join(f"{'/'.join(place)}.py" for place in sorted(LAST_RESORTS))


def check(source: Source) -> Findings:
    """Find handlers and `suppress` calls that would swallow any failure."""
    if source.module in LAST_RESORTS:
        return 0
    examined = 0
    for node in source.nodes:
        if isinstance(node, ast.excepthandler | ast.Call):
            examined += isinstance(node, ast.excepthandler)
            if _catches_all(node):
                yield source.finding(node, MESSAGE.format(places=_PLACES))
    return examined


def _catches_all(node: ast.excepthandler | ast.Call) -> bool:
    match node:
        case ast.ExceptHandler(type=None):
            return True
        case ast.ExceptHandler(type=caught, body=body) if caught is not None:
            names = _names(caught)
            return "Exception" in names or ("BaseException" in names and not _raises_again(body))
        case ast.Call(func=ast.Name(id="suppress") | ast.Attribute(attr="suppress"), args=caught):
            return any(_names(name) & {"Exception", "BaseException"} for name in caught)
        case _:
            return False


def _names(caught: ast.expr) -> set[str]:
    return {node.id for node in ast.walk(caught) if isinstance(node, ast.Name)}


def _raises_again(body: list[ast.stmt]) -> bool:
    """Cleaning up is no handling: cancellation and failure both go on."""
    return isinstance(body[-1], ast.Raise) and body[-1].exc is None
