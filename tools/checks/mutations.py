"""A handler changes something only after its caller's key was read again."""

import ast
import re

from tools.checks.source import Findings, Source

OPERATOR = "operator"
"""The name of the session in which an operator's command runs, and which gives its authority."""
EXEMPTION = re.compile(r"#\s*caller:\s*\S")
MESSAGE = (
    "use `AdminDatabase.mutation_by(call)`, which reads the caller's key again, or"
    " `operator.authority(...)`; else say `# caller: <why it may>` on the line"
)


def check(source: Source) -> Findings:
    """Find functions that open a mutation of the database by themselves."""
    examined = 0
    for node in source.nodes:
        match node:
            case ast.Call(func=ast.Attribute(attr="mutation" | "mutations"), args=arguments):
                examined += 1
                is_exempt = EXEMPTION.search(source.lines[node.lineno - 1])
                if not (is_exempt or any(map(_is_operators, arguments))):
                    yield source.finding(node, MESSAGE)
            case _:
                pass
    return examined


def _is_operators(authority: ast.expr) -> bool:
    match authority:
        case ast.Call(func=ast.Attribute(attr="authority", value=ast.Name(id=name))):
            return name == OPERATOR
        case _:
            return False
