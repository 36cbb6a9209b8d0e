"""A file fits in a reader's head, a function on a screen."""

import ast
from collections.abc import Iterator

from tools.checks.source import Finding, Source

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 50


def check(source: Source) -> Iterator[Finding]:
    """Find files and functions that want to be two."""
    lines = len(source.text.splitlines())
    if lines > FILE_LINES_MAX:
        message = f"{lines} lines in one file; at most {FILE_LINES_MAX}"
        yield Finding(path=source.path, line=FILE_LINES_MAX + 1, message=message)
    for node in ast.walk(source.tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        length = (node.end_lineno or node.lineno) - node.lineno + 1
        if length > FUNCTION_LINES_MAX:
            message = f"`{node.name}` has {length} lines; at most {FUNCTION_LINES_MAX}"
            yield source.finding(node, message)
