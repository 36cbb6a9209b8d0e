"""Every function with SQL of tenants says whose rows it touches.

A tenant's table has a column `organization_id`; a function of the database that names one, or calls
one that does, is a tenant's too.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tools.checks import sql, tables
from tools.checks.source import Findings, Source

IDENTIFIER = "OrganizationId"
COLUMN = "organization_id"
ROOT_TABLE = "organizations"
EXEMPTION = re.compile(r"(#|--)\s*all organizations:\s*\S")
MESSAGE = (
    "`{name}` must take organization_id: OrganizationId, or a type that holds it, right after the"
    " transaction; else say `# all organizations: <reason>` on its def line"
)
UNSCOPED = (
    "the statement must start from organization_id; else say `-- all organizations: <reason>` in it"
)

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, kw_only=True)
class Tenancy:
    """What is a tenant's in the package."""

    carriers: frozenset[str]
    """Classes that have a field of type OrganizationId, and names of types made of it."""
    relations: frozenset[str]
    """Tables, and functions of the database."""
    constants: dict[tuple[str, ...], frozenset[str]]
    """Names of each module that hold SQL of tenants, directly or through another name."""


def tenancy(sources: Iterable[Source]) -> Tenancy:
    """Find what is a tenant's."""
    sources = list(sources)
    texts = [(source, sql.statements(source)) for source in sources]
    relations = _relations([each for _, found in texts for each in found])
    return Tenancy(
        carriers=carriers(sources),
        relations=relations,
        constants={source.module: _constants(source, found, relations) for source, found in texts},
    )


def carriers(sources: Iterable[Source]) -> frozenset[str]:
    """Names of classes that have a field of type OrganizationId, and of types made of it."""
    return frozenset(name for source in sources for name in _carriers(source))


def _carriers(source: Source) -> Iterator[str]:
    for node in source.nodes:
        match node:
            case ast.ClassDef(name=name) if any(map(_holds_organization, node.body)):
                yield name
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Subscript() as value):
                if any(_name(each) == IDENTIFIER for each in ast.walk(value)):
                    yield name
            case _:
                pass


def check(source: Source, tenants: Tenancy) -> Findings:
    """Find functions and statements that could touch rows of any organization."""
    examined = 0
    for function, is_exempt in functions(source, tenants):
        examined += 1
        if not (is_exempt or _is_scoped(function, tenants.carriers)):
            yield source.finding(function, MESSAGE.format(name=function.name))
    for each in sql.statements(source):
        if each.is_function or (source.is_sql and not each.is_schema):
            if tenants.relations.isdisjoint(each.tables):
                continue
            examined += 1
            if COLUMN not in each.text and not EXEMPTION.search(each.text):
                yield source.finding(each.node, UNSCOPED)
    return examined


def functions(source: Source, tenants: Tenancy) -> Iterator[tuple[Function, bool]]:
    """Yield functions and methods with SQL of tenants, and whether each says why it is for all."""
    names = tenants.constants[source.module] | set(_imported(source, tenants))
    literals = {
        id(each.node)
        for each in sql.statements(source)
        if _is_tenants(each, tenants.relations) and not each.is_schema
    }
    for function in _functions(source.tree.body):
        if any(id(node) in literals or _name(node) in names for node in ast.walk(function)):
            yield function, EXEMPTION.search(source.lines[function.lineno - 1]) is not None


def _relations(found: list[sql.Statement]) -> frozenset[str]:
    """Return what is a tenant's. A table that no statement creates is one."""
    created = sql.tables(found)
    names = (set(tables.OWNERS) | set(created)) - {
        name for name, body in created.items() if COLUMN not in body and name != ROOT_TABLE
    }
    functions = {(name, each.words) for name, each in sql.functions(found)}
    while more := {name for name, words in functions if name not in names and words & names}:
        names |= more
    return frozenset(names)


def _is_tenants(statement: sql.Statement, relations: frozenset[str]) -> bool:
    words = statement.words
    return COLUMN in words or not words.isdisjoint(relations) or sql.UNKNOWN in statement.tables


def _constants(
    source: Source, found: Iterable[sql.Statement], relations: frozenset[str]
) -> frozenset[str]:
    literals = {id(each.node) for each in found if _is_tenants(each, relations)}
    names: set[str] = set()
    for statement in source.tree.body:
        if isinstance(statement, ast.Assign | ast.AnnAssign) and any(
            id(node) in literals or _name(node) in names for node in ast.walk(statement)
        ):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            names |= {node.id for node in targets if isinstance(node, ast.Name)}
    return frozenset(names)


def _imported(source: Source, tenants: Tenancy) -> Iterator[str]:
    for node in source.nodes:
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            theirs = tenants.constants.get(tuple(node.module.split(".")[1:]), frozenset())
            yield from (alias.asname or alias.name for alias in node.names if alias.name in theirs)


def _functions(body: Iterable[ast.stmt]) -> Iterator[Function]:
    """Yield functions and methods. What stands inside of a function is part of it."""
    for node in body:
        if isinstance(node, Function):
            yield node
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node.body)


def _name(node: ast.AST) -> str | None:
    return node.id if isinstance(node, ast.Name) else None


def _holds_organization(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.AnnAssign) and _is_identifier(statement.annotation)


def _is_identifier(annotation: ast.expr | None) -> bool:
    return isinstance(annotation, ast.Name) and annotation.id == IDENTIFIER


def _is_scoped(function: Function, carrying: frozenset[str]) -> bool:
    """Look at the first parameter after the transaction, or at the mutation's own organization."""
    parameters = [
        each for each in (*function.args.args, *function.args.kwonlyargs) if each.arg != "self"
    ]
    if parameters and _is_own(parameters[0], function):
        return True
    return any(_is_organization(each, carrying) for each in parameters[:2])


def _is_organization(parameter: ast.arg, carrying: frozenset[str]) -> bool:
    if parameter.arg == COLUMN:
        return _is_identifier(parameter.annotation)
    return parameter.annotation is not None and any(
        isinstance(node, ast.Name) and node.id in carrying
        for node in ast.walk(parameter.annotation)
    )


def _is_own(parameter: ast.arg, function: Function) -> bool:
    """Return whether a function uses the organization of its mutation."""
    return isinstance(parameter.annotation, ast.Name) and (
        parameter.annotation.id == "Mutation"
        and any(
            isinstance(node, ast.Attribute)
            and node.attr == COLUMN
            and _name(node.value) == parameter.arg
            for node in ast.walk(function)
        )
    )
