"""The list of all mutants, in a stable order, and samples of it."""

import ast
import hashlib
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Final, cast

from tools.checks.source import split
from tools.checks.sql import FUNCTION
from tools.mutants import python_operators, sql_operators, targets
from tools.mutants.mutant import Edit, Lines, Mutant, named
from tools.mutants.python_operators import Members, Source

_OBSERVING: Final = frozenset({"logger", "metrics", "trace", "traces", "tracing", "span", "spans"})
"""What is called on these names is only seen by operators."""
_SHOWING: Final = frozenset({"__repr__", "__str__"})
_ENUMERATIONS: Final = frozenset({"Enum", "StrEnum", "IntEnum"})
CHOSEN_MIN: Final = 4
_LEFT_OUT: Final = frozenset({"decorator_list", "annotation", "returns", "bases", "msg"})
_FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)


def mutants(root: Path) -> list[Mutant]:
    """Return every mutant of the files that are mutated."""
    enumerations = _enumerations(root)
    return [
        mutant
        for path in targets.paths(root)
        for mutant in of_file(path, (root / path).read_bytes(), enumerations)
    ]


def sample(found: Sequence[Mutant], seed: int) -> Iterator[Mutant]:
    """Yield all mutants in an order drawn by the seed, one of each group in turn.

    The place of a mutant in its group does not depend on other mutants, so that a change of the
    source changes little of a sample.
    """
    drawn: dict[str, list[Mutant]] = {}
    for mutant in sorted(found, key=lambda mutant: _draw(seed, mutant)):
        drawn.setdefault(targets.group(mutant.path), []).append(mutant)
    for row in zip_longest(*(drawn[name] for name in sorted(drawn))):
        yield from (mutant for mutant in row if mutant is not None)


def _draw(seed: int, mutant: Mutant) -> bytes:
    return hashlib.sha256(f"{seed} {mutant.identity}".encode()).digest()


def of_file(path: str, text: bytes, enumerations: dict[str, Members]) -> Iterator[Mutant]:
    """Yield the mutants of one file, in the order of their places."""
    if path.endswith(".sql"):
        yield from named(path, text, _of_sql(text))
        return
    tree = ast.parse(text, filename=path)
    source = Source(text=text, lines=Lines(text), members=_members(path, tree, enumerations))
    yield from named(path, text, _Finder(source).walk(tree))


def _of_sql(text: bytes) -> Iterator[tuple[str, Edit]]:
    """Yield the edits of a file of SQL, each with the name of the database function around it."""
    for start, statement in split(text.decode("latin-1")):
        name = next((name for name in FUNCTION.findall(statement)), "module")
        for edit in sql_operators.edits(statement.encode("latin-1"), start):
            yield name, edit


class _Finder:
    """Walks one file and keeps the function that it is in."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._names: list[str] = []
        self._functions: list[ast.AST] = []

    def walk(self, node: ast.AST) -> Iterator[tuple[str, Edit]]:
        """Yield the edits of a node and of all below it, each with its function's name."""
        if _is_left_alone(node) or self._is_choice(node):
            return
        if isinstance(node, ast.Constant | ast.JoinedStr) and self._is_literal(node):
            start, end = self._source.span(node)
            yield from self._named(sql_operators.edits(self._source.text[start:end], start))
            return
        for edits in (
            python_operators.edits,
            python_operators.conditions,
            python_operators.statements,
        ):
            yield from self._named(edits(node, self._source))
        if isinstance(node, ast.Return) and self._functions:
            function = self._functions[-1]
            yield from self._named(python_operators.returned(node, function, self._source))
        yield from self._below(node)

    def _below(self, node: ast.AST) -> Iterator[tuple[str, Edit]]:
        name = self._name(node)
        if name is not None:
            self._names.append(name)
        if isinstance(node, _FUNCTIONS):
            self._functions.append(node)
        for child in _children(node):
            yield from self.walk(child)
        if isinstance(node, _FUNCTIONS):
            self._functions.pop()
        if name is not None:
            self._names.pop()

    def _name(self, node: ast.AST) -> str | None:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                return node.name
            case _:
                return None if self._names else _constant(node)

    def _named(self, edits: Iterator[Edit]) -> Iterator[tuple[str, Edit]]:
        name = ".".join(self._names) or "module"
        for edit in edits:
            yield name, edit

    def _is_choice(self, node: ast.AST) -> bool:
        """Return whether a node is a number that a module chose: one more is no mistake."""
        return (
            not self._functions
            and isinstance(node, ast.Constant)
            and isinstance(node.value, int | float)
            and node.value > CHOSEN_MIN
        )

    @staticmethod
    def _is_literal(node: ast.Constant | ast.JoinedStr) -> bool:
        return isinstance(node, ast.JoinedStr) or isinstance(node.value, str)


def _constant(node: ast.AST) -> str | None:
    """Return the name that a statement assigns to."""
    match node:
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name
        case _:
            return None


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what may be mutated below a node: no decorators, annotations or type parameters."""
    is_class = isinstance(node, ast.ClassDef)
    for field, value in ast.iter_fields(node):
        if field in _LEFT_OUT or (is_class and field == "keywords"):
            continue
        children = cast("list[object]", value if isinstance(value, list) else [value])
        yield from (child for child in children if isinstance(child, ast.AST))


def _is_left_alone(node: ast.AST) -> bool:
    match node:
        case (
            ast.Assert()
            | ast.Import()
            | ast.ImportFrom()
            | ast.Expr(value=ast.Constant())
            | ast.If(test=ast.Name(id="TYPE_CHECKING"))
            | ast.Assign(targets=[ast.Name(id="__slots__")])
            | ast.Call(func=ast.Name(id="TypeVar" | "NewType" | "ParamSpec"))
        ):
            return True
        case ast.Expr(value=ast.Call(func=called) | ast.Await(value=ast.Call(func=called))):
            return _root(called) in _OBSERVING
        case ast.FunctionDef(name=name):
            return name in _SHOWING
        case _:
            return False


def _root(called: ast.expr) -> str | None:
    """Return the name before the last dot: `metrics` of `metrics.add` and `self.metrics.add`."""
    match called:
        case ast.Attribute(value=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name.removeprefix("_")
        case _:
            return None


def _enumerations(root: Path) -> dict[str, Members]:
    """Return the members of every enumeration, by module and class."""
    found: dict[str, Members] = {}
    for path in sorted((root / targets.PACKAGE).rglob("*.py")):
        classes = {
            node.name: tuple(_assigned(node))
            for node in ast.walk(ast.parse(path.read_bytes()))
            if isinstance(node, ast.ClassDef)
            and any(isinstance(base, ast.Name) and base.id in _ENUMERATIONS for base in node.bases)
        }
        module = path.relative_to(root / "src").with_suffix("")
        found[".".join(module.parts)] = classes
    return found


def _assigned(node: ast.ClassDef) -> Iterator[str]:
    for statement in node.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)]):
                yield name
            case _:
                pass


def _members(path: str, tree: ast.Module, enumerations: dict[str, Members]) -> Members:
    """Return the members of the enumerations that a file defines or imports."""
    own = ".".join(Path(path).relative_to("src").with_suffix("").parts)
    found = dict(enumerations.get(own, {}))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in enumerations:
            classes = enumerations[node.module]
            found |= {
                alias.asname or alias.name: classes[alias.name]
                for alias in node.names
                if alias.name in classes
            }
    return found
