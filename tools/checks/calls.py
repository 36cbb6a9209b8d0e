"""Where the package runs its SQL: with which arguments, and which columns are read of a row."""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tools.checks import sql, tables
from tools.checks.source import Source
from tools.checks.statements import is_run

ROW = "Row"
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    """One statement at one place. A part that the syntax does not tell is None."""

    place: str
    text: str
    types: tuple[ast.expr | None, ...] | None
    """The annotation of each argument."""
    names: tuple[str | None, ...]
    """Each argument, such as `project.name`, up to one with `*`."""
    columns: frozenset[str]
    """The names that are read of its rows."""


@dataclass(frozen=True, kw_only=True)
class Package:
    """What a call may refer to in another module."""

    texts: dict[tuple[tuple[str, ...], str], str]
    functions: dict[tuple[tuple[str, ...], str], Function]
    fields: dict[str, dict[str, ast.expr]]
    """The annotations of the fields and properties of each class."""


def find(sources: Sequence[Source]) -> Iterator[Call]:
    """Yield each call whose statement is known."""
    package = Package(
        texts={
            (source.module, each.name): each.text
            for source in sources
            for each in sql.statements(source)
            if each.name is not None
        },
        functions={
            (source.module, node.name): node
            for source in sources
            for node in source.tree.body
            if isinstance(node, Function)
        },
        fields={
            node.name: dict(_fields(node))
            for source in sources
            for node in source.nodes
            if isinstance(node, ast.ClassDef) and source.module[0] != "contract"
        },
    )
    for source in sources:
        module = _Module(source, package)
        for node in source.nodes:
            if isinstance(node, Function):
                yield from module.calls(node)


def prepared(sources: Iterable[Source]) -> Iterator[tuple[str, sql.Statement]]:
    """Yield each statement that a server can prepare, with its place.

    What only stands in other statements is a part of them, and a name that is built is unknown.
    """
    for source in sources:
        if source.module[:2] == tables.MIGRATIONS:
            continue
        parts, whole = _uses(source)
        for each in sql.statements(source):
            is_part = each.name in parts and each.name not in whole
            if each.is_query and not is_part and sql.UNKNOWN not in each.text:
                yield _place(source, each.node), each


def examined(sources: Sequence[Source]) -> dict[str, int]:
    """Return how much of the SQL the syntax tells, which a test compares with a server."""
    found = list(find(sources))
    return {
        "prepared statements": len(list(prepared(sources))),
        "calls": len(found),
        "typed arguments": sum(each is not None for call in found for each in call.types or ()),
        "columns read": sum(len(call.columns) for call in found),
    }


class _Module:
    def __init__(self, source: Source, package: Package) -> None:
        self._source = source
        self._package = package
        self._literals = {id(each.node): each.text for each in sql.statements(source)}
        self._origins = {
            alias.asname or alias.name: (tuple(node.module.split(".")[1:]), alias.name)
            for node in source.nodes
            if isinstance(node, ast.ImportFrom) and node.module is not None
            for alias in node.names
        }

    def calls(self, function: Function) -> Iterator[Call]:
        """Yield the calls of one function."""
        known = {
            each.arg: each.annotation
            for each in (*function.args.args, *function.args.kwonlyargs)
            if each.annotation is not None
        }
        runs = {id(node): node for node in _inside(function) if is_run(node)}
        read = self._columns(function, runs)
        for key, run in runs.items():
            if run.args and (text := self._text(run.args[0])) is not None:
                yield Call(
                    place=_place(self._source, run),
                    text=text,
                    types=self._types(run.args[1:], known),
                    names=tuple(_names(run.args[1:])),
                    columns=frozenset(read[key]),
                )

    def _text(self, node: ast.expr) -> str | None:
        if isinstance(node, ast.Name):
            own = (self._source.module, node.id)
            return self._package.texts.get(own) or self._package.texts.get(
                self._origins.get(node.id, own)
            )
        return self._literals.get(id(node))

    def _types(
        self, arguments: list[ast.expr], known: Mapping[str, ast.expr]
    ) -> tuple[ast.expr | None, ...] | None:
        found: list[ast.expr | None] = []
        for each in arguments:
            if not isinstance(each, ast.Starred):
                found.append(self._type(each, known))
                continue
            several = self._returned(each.value)
            if several is None:
                return None
            found += several
        return tuple(found)

    def _type(self, node: ast.expr, known: Mapping[str, ast.expr]) -> ast.expr | None:
        match node:
            case ast.Name(id=name):
                return known.get(name)
            case ast.Attribute(value=ast.Name(id=name), attr=attribute):
                of = known.get(name)
                fields = self._package.fields.get(of.id, {}) if isinstance(of, ast.Name) else {}
                return fields.get(attribute)
            case ast.Attribute(value=value, attr=attribute):
                of = self._type(value, known)
                fields = self._package.fields.get(of.id, {}) if isinstance(of, ast.Name) else {}
                return fields.get(attribute)
            case _:
                return None

    def _returned(self, node: ast.expr) -> list[ast.expr] | None:
        """Return the types of a tuple that a function of the package returns."""
        match self._called(node):
            case ast.FunctionDef(
                returns=ast.Subscript(value=ast.Name(id="tuple"), slice=ast.Tuple(elts=found))
            ) if not any(isinstance(each, ast.Constant) for each in found):
                return found
            case _:
                return None

    def _called(self, node: ast.AST) -> Function | None:
        match node:
            case ast.Call(func=ast.Name(id=name)):
                own = (self._source.module, name)
                return self._package.functions.get(own) or self._package.functions.get(
                    self._origins.get(name, own)
                )
            case _:
                return None

    def _columns(
        self, function: Function, runs: Mapping[int, ast.Call]
    ) -> defaultdict[int, set[str]]:
        """Return the names that are read of the rows of each call."""
        read: defaultdict[int, set[str]] = defaultdict(set)
        origins = _origins(function, runs)
        for node in _inside(function):
            match node:
                case ast.Subscript(value=value, slice=ast.Constant(value=str(name))):
                    for each in _calls(value, runs, origins):
                        read[each].add(name)
                case ast.Call(args=arguments):
                    for each in arguments:
                        for key in _calls(each, runs, origins):
                            read[key] |= self._read_by(node)
                case _:
                    pass
        return read

    def _read_by(self, call: ast.Call) -> set[str]:
        """Return the names that a function reads of its row."""
        decoder = self._called(call)
        if decoder is None:
            return set()
        rows = {
            each.arg
            for each in decoder.args.args
            if isinstance(each.annotation, ast.Name) and each.annotation.id == ROW
        }
        return {
            node.slice.value
            for node in ast.walk(decoder)
            if isinstance(node, ast.Subscript)
            and isinstance(node.value, ast.Name)
            and node.value.id in rows
            and isinstance(node.slice, ast.Constant)
            and isinstance(node.slice.value, str)
        }


def _origins(function: Function, runs: Mapping[int, ast.Call]) -> Mapping[str, set[int]]:
    """Return the names that hold rows, each with the calls that they can come from."""
    found: defaultdict[str, set[int]] = defaultdict(set)
    for node in _inside(function):
        match node:
            case (
                ast.Assign(
                    targets=[ast.Name(id=name) | ast.Tuple(elts=[ast.Name(id=name)])], value=value
                )
                | ast.NamedExpr(target=ast.Name(id=name), value=value)
                | ast.For(target=ast.Name(id=name), iter=value)
                | ast.AsyncFor(target=ast.Name(id=name), iter=value)
                | ast.comprehension(target=ast.Name(id=name), iter=value)
            ):
                found[name] |= _calls(value, runs, found)
            case _:
                pass
    return found


def _calls(
    node: ast.AST, runs: Mapping[int, ast.Call], origins: Mapping[str, set[int]]
) -> set[int]:
    """Return the calls whose row or rows an expression is."""
    match node:
        case ast.Await(value=inner) | ast.Subscript(value=inner, slice=ast.Constant(value=int())):
            return _calls(inner, runs, origins)
        case ast.Name(id=name):
            return origins.get(name, set())
        case ast.Call() if id(node) in runs:
            return {id(node)}
        case _:
            return set()


def _inside(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a function in their order, without functions inside of it."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, Function):
            yield child
            yield from _inside(child)


def _fields(node: ast.ClassDef) -> Iterator[tuple[str, ast.expr]]:
    for each in node.body:
        match each:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation):
                yield name, annotation
            case ast.FunctionDef(
                name=name, returns=annotation, decorator_list=[ast.Name(id="property")]
            ):
                if annotation is not None:
                    yield name, annotation
            case _:
                pass


def _names(arguments: list[ast.expr]) -> Iterator[str | None]:
    for each in arguments:
        match each:
            case ast.Name() | ast.Attribute():
                yield ast.unparse(each)
            case ast.Starred():
                return
            case _:
                yield None


def _uses(source: Source) -> tuple[set[str], set[str]]:
    """Return the names that stand inside of other statements, and those that stand elsewhere."""
    inside: set[int] = set()
    for node in source.nodes:
        match node:
            case ast.FormattedValue(value=part):
                inside.add(id(part))
            case ast.BinOp(op=ast.Add(), left=left, right=right):
                inside |= {id(left), id(right)}
            case _:
                pass
    names = [
        each
        for each in source.nodes
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)
    ]
    return (
        {each.id for each in names if id(each) in inside},
        {each.id for each in names if id(each) not in inside},
    )


def _place(source: Source, node: ast.AST) -> str:
    return f"{source.path}:{getattr(node, 'lineno', 1)}"
