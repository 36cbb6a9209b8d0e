"""Edits of Python code, one function per kind of syntax."""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from tools.mutants.mutant import Edit, Lines

Members = Mapping[str, tuple[str, ...]]

_COMPARISONS: Final[dict[type[ast.cmpop], tuple[bytes, bytes, str]]] = {
    ast.Lt: (rb"<", b"<=", "boundary"),
    ast.LtE: (rb"<=", b"<", "boundary"),
    ast.Gt: (rb">", b">=", "boundary"),
    ast.GtE: (rb">=", b">", "boundary"),
    ast.Eq: (rb"==", b"!=", "equality"),
    ast.NotEq: (rb"!=", b"==", "equality"),
    ast.Is: (rb"\bis\b", b"is not", "equality"),
    ast.IsNot: (rb"\bis\s+not\b", b"is", "equality"),
    ast.In: (rb"\bin\b", b"not in", "membership"),
    ast.NotIn: (rb"\bnot\s+in\b", b"in", "membership"),
}
_ARITHMETIC: Final[dict[type[ast.operator], tuple[bytes, bytes]]] = {
    ast.Add: (rb"\+", b"-"),
    ast.Sub: (rb"-", b"+"),
    ast.Mult: (rb"\*", b"//"),
    ast.FloorDiv: (rb"//", b"*"),
    ast.Mod: (rb"%", b"//"),
}
_CALLS: Final = {"min": b"max", "max": b"min", "any": b"all", "all": b"any"}
_NO_NUMBERS: Final = (ast.Constant, ast.JoinedStr, ast.List, ast.Tuple, ast.Dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """A file, and the members of each enumeration by the name that it has in this file."""

    text: bytes
    lines: Lines
    members: Members

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """Return the offsets of a node."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = self.lines.offset(node.lineno, node.col_offset)
        return start, self.lines.offset(node.end_lineno, node.end_col_offset)

    def replace(self, operator: str, node: ast.expr | ast.stmt, replacement: bytes) -> Edit:
        """Return the edit that puts other text in the place of a node."""
        start, end = self.span(node)
        return Edit(operator=operator, start=start, end=end, replacement=replacement)

    def negate(self, operator: str, node: ast.expr) -> Edit:
        """Return the edit that negates a condition."""
        start, end = self.span(node)
        return self.replace(operator, node, b"(not (" + self.text[start:end] + b"))")

    def between(
        self, operator: str, nodes: tuple[ast.expr, ast.expr], found: bytes, replacement: bytes
    ) -> Iterator[Edit]:
        """Yield the edit of an operator's own text, between its operands."""
        start, end = self.span(nodes[0])[1], self.span(nodes[1])[0]
        match = re.search(found, self.text[start:end])
        if match is not None:
            start, end = start + match.start(), start + match.end()
            yield Edit(operator=operator, start=start, end=end, replacement=replacement)


def edits(node: ast.AST, source: Source) -> Iterator[Edit]:
    """Yield the edits of an expression itself, without those of its parts."""
    match node:
        case ast.Compare():
            yield from _comparison(node, source)
        case ast.BinOp() | ast.AugAssign():
            yield from _arithmetic(node, source)
        case ast.BoolOp():
            yield from _and_or(node, source)
        case ast.UnaryOp(op=ast.Not()):
            start, end = source.span(node.operand)
            yield source.replace("not", node, source.text[start:end])
        case ast.Constant():
            yield from _constant(node, source)
        case ast.Call(func=ast.Name(id=name)) if name in _CALLS:
            yield source.replace("extreme", node.func, _CALLS[name])
        case ast.Attribute(value=ast.Name(id=name), attr=member) if name in source.members:
            yield from _member(node, source.members[name], member, source)
        case _:
            pass


def conditions(node: ast.AST, source: Source) -> Iterator[Edit]:
    """Yield the edits that negate a condition."""
    match node:
        case ast.If() | ast.While() | ast.IfExp():
            yield from _condition(node.test, source)
        case ast.comprehension():
            for test in node.ifs:
                yield from _condition(test, source)
        case _:
            pass


def returned(node: ast.Return, function: ast.AST, source: Source) -> Iterator[Edit]:
    """Yield the edit of a returned value: negated if the function returns bool, else None."""
    if node.value is None or (isinstance(node.value, ast.Constant) and node.value.value is None):
        return
    match function:
        case (
            ast.FunctionDef(returns=ast.Name(id="bool"))
            | ast.AsyncFunctionDef(returns=ast.Name(id="bool"))
        ):
            if not isinstance(node.value, ast.Constant | ast.Compare | ast.UnaryOp):
                yield source.negate("return_not", node.value)
        case _:
            yield source.replace("return_none", node.value, b"None")


def _comparison(node: ast.Compare, source: Source) -> Iterator[Edit]:
    operands = [node.left, *node.comparators]
    for left, operator, right in zip(operands, node.ops, operands[1:], strict=False):
        found, replacement, name = _COMPARISONS[type(operator)]
        yield from source.between(name, (left, right), found, replacement)


def _arithmetic(node: ast.BinOp | ast.AugAssign, source: Source) -> Iterator[Edit]:
    left, right = (
        (node.left, node.right) if isinstance(node, ast.BinOp) else (node.target, node.value)
    )
    if type(node.op) not in _ARITHMETIC or any(map(_is_text, (left, right))):
        return
    yield from source.between("arithmetic", (left, right), *_ARITHMETIC[type(node.op)])


def _is_text(node: ast.expr) -> bool:
    """Whether an operand is no number, so that another operator would only fail."""
    is_number = isinstance(node, ast.Constant) and isinstance(node.value, int | float)
    return isinstance(node, _NO_NUMBERS) and not is_number


def _and_or(node: ast.BoolOp, source: Source) -> Iterator[Edit]:
    found, replacement = (b"and", b"or") if isinstance(node.op, ast.And) else (b"or", b"and")
    for left, right in zip(node.values, node.values[1:], strict=False):
        yield from source.between("and_or", (left, right), rb"\b" + found + rb"\b", replacement)
    neutral = b"True" if isinstance(node.op, ast.And) else b"False"
    for value in node.values:
        yield source.replace("drop_operand", value, neutral)


def _condition(test: ast.expr, source: Source) -> Iterator[Edit]:
    is_covered = isinstance(test, ast.UnaryOp | ast.Constant) or (
        isinstance(test, ast.Compare) and not isinstance(test.ops[0], ast.Lt | ast.LtE | ast.Gt)
    )
    if not is_covered:
        yield source.negate("condition", test)


def _constant(node: ast.Constant, source: Source) -> Iterator[Edit]:
    match node.value:
        case bool():
            yield source.replace("boolean", node, str(not node.value).encode())
        case int() | float():
            yield source.replace("constant_plus", node, str(node.value + 1).encode())
            yield source.replace("constant_minus", node, str(node.value - 1).encode())
        case _:
            pass


def _member(
    node: ast.Attribute, members: tuple[str, ...], member: str, source: Source
) -> Iterator[Edit]:
    if member in members and len(members) > 1:
        sibling = members[(members.index(member) + 1) % len(members)]
        name = source.text[slice(*source.span(node.value))]
        yield source.replace("member", node, name + b"." + sibling.encode())


def statements(node: ast.AST, source: Source) -> Iterator[Edit]:
    """Yield the edits that leave out a statement."""
    match node:
        case ast.Expr(value=ast.Call() | ast.Await()):
            yield source.replace("drop_call", node, b"pass")
        case ast.Raise():
            yield source.replace("drop_raise", node, b"pass")
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield source.replace("drop_assignment", node, b"pass")
        case ast.Break():
            yield source.replace("break", node, b"continue")
        case ast.Continue():
            yield source.replace("break", node, b"break")
        case _:
            pass
