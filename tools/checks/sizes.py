"""A file fits in a reader's head, a function on a screen."""

import ast

from tools.checks.source import Finding, Findings, Source

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 50


def check(source: Source) -> Findings:
    """Find files and functions that want to be two."""
    if source.is_sql:
        return 0
    examined = 0
    lines = len(source.lines)
    if lines > FILE_LINES_MAX:
        message = f"{lines} lines in one file; at most {FILE_LINES_MAX}"
        yield Finding(path=source.path, line=FILE_LINES_MAX + 1, message=message)
    for node in source.nodes:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        examined += 1
        length = (node.end_lineno or node.lineno) - node.lineno + 1
        if length > FUNCTION_LINES_MAX:
            message = f"`{node.name}` has {length} lines; at most {FUNCTION_LINES_MAX}"
            yield source.finding(node, message)
    return examined
