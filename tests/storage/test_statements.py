"""PostgreSQL prepares every statement, and its types are those of the code that runs it."""

import ast
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from tools.checks import calls
from tools.checks.source import Source, read

ROOT = Path(__file__).parents[2]
EXTENSION = "plpgsql_check"
SOURCES = list(read(ROOT))
TYPES = {
    "str": {"text", "varchar", "bpchar", "name", "jsonb", "json"},
    "int": {"int2", "int4", "int8", "numeric"},
    "Decimal": {"numeric"},
    "float": {"float8", "float4", "numeric"},
    "bool": {"bool"},
    "bytes": {"bytea"},
    "date": {"date"},
    "datetime": {"timestamptz"},
    "timedelta": {"interval"},
    "UUID": {"uuid"},
    "PicoUsd": {"numeric"},
}
INSERTED = re.compile(r"INSERT INTO \w+(?: AS \w+)?\s*\(([^()]*)\)\s*VALUES\s*\(([^()]*)\)")
COMPARED = re.compile(r"(\w+) = \$(\d+)")
LISTS = {"list", "tuple", "Sequence", "Collection", "Iterable", "frozenset", "set"}
PLANT = """
class PlantedProject:
    id: ProjectId
    name: str

def both(project: PlantedProject) -> tuple[OrganizationId, str]: ...

async def save(tx: Mutation, organization_id: OrganizationId, project: PlantedProject) -> UUID:
    row = await tx.fetch_one(
        "UPDATE projects SET name = $2 WHERE organization_id = $1 AND id = $3 RETURNING id",
        ARGUMENTS,
    )
    return shown(row)

def shown(row: Row) -> tuple[UUID, str]:
    return row["id"], row["title"]
"""
IDENTIFIERS = {
    node.targets[0].id: TYPES[node.value.args[1].id]
    for source in SOURCES
    for node in source.nodes
    if isinstance(node, ast.Assign)
    and isinstance(node.targets[0], ast.Name)
    and isinstance(node.value, ast.Call)
    and isinstance(node.value.func, ast.Name)
    and node.value.func.id == "NewType"
    and isinstance(node.value.args[1], ast.Name)
    and node.value.args[1].id in TYPES
}


def admitted(annotation: ast.expr | None) -> set[str] | None:
    """Return the types of PostgreSQL that a value of an annotation can have, if that is known."""
    match annotation:
        case ast.Name(id=name):
            return IDENTIFIERS.get(name) or TYPES.get(name)
        case ast.BinOp(op=ast.BitOr(), left=left, right=ast.Constant(value=None)):
            return admitted(left)
        case ast.Subscript(value=ast.Name(id=name), slice=item) if name in LISTS:
            item = item.elts[0] if isinstance(item, ast.Tuple) else item
            of = admitted(item)
            return None if of is None else {f"{each}[]" for each in of}
        case _:
            return None


def columns_of_parameters(text: str) -> dict[int, str]:
    """Return the columns that parameters are inserted into, or compared with."""
    found = {int(number): column for column, number in COMPARED.findall(text)}
    if inserted := INSERTED.search(text):
        columns, values = ([each.strip() for each in part.split(",")] for part in inserted.groups())
        found |= {
            int(value.removeprefix("$")): column
            for column, value in zip(columns, values, strict=False)
            if value.removeprefix("$").isdigit()
        }
    return found


def differences(call: calls.Call, parameters: list[str], columns: set[str]) -> list[str]:
    """Say where a call differs from its prepared statement."""
    found = [f"column {each}" for each in sorted(call.columns - columns)]
    stored = columns_of_parameters(call.text)
    for number, name in enumerate(call.names, 1):
        column = stored.get(number)
        *owner, last = (name or "").split(".")
        own = {last, f"{owner[-1]}_{last}"} if owner else {last}
        if column is not None and column not in own and last in stored.values():
            found.append(f"{name} for ${number}, which is for {column}")
    if call.types is None:
        return found
    if len(call.types) != len(parameters):
        return [*found, f"{len(call.types)} arguments for {len(parameters)} parameters"]
    for number, (annotation, parameter) in enumerate(zip(call.types, parameters, strict=True), 1):
        types = admitted(annotation)
        if annotation is not None and types is not None and parameter not in types:
            found.append(f"{ast.unparse(annotation)} for ${number}, which is {parameter}")
    return found


FINDINGS = """
    SELECT f.proname, c.message
      FROM pg_proc f
      JOIN pg_language l ON l.oid = f.prolang AND l.lanname = 'plpgsql'
      LEFT JOIN pg_trigger t ON t.tgfoid = f.oid AND t.tgparentid = 0
     CROSS JOIN LATERAL plpgsql_check_function_tb(
           f.oid, coalesce(t.tgrelid, 0), oldtable => t.tgoldtable, newtable => t.tgnewtable) c
     WHERE f.pronamespace = 'public'::regnamespace
       AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = f.oid AND d.deptype = 'e')
"""


PLANTED_FUNCTION = """
    CREATE FUNCTION planted() RETURNS void LANGUAGE plpgsql AS $$
    BEGIN
        PERFORM 1 FROM missing;
    END
    $$
"""
PLANTED_FINDING = ("planted", 'relation "missing" does not exist')
ACCEPTED = {
    ("ledger_find_entries", "target type is different type than source type"),
    ("ledger_settle_one", "cannot determinate a result of dynamic SQL"),
}
"""An array that begins empty, and a row of a partition whose name is no argument."""


@pytest.fixture
async def connection(database_url: str) -> AsyncIterator["asyncpg.Connection[Any]"]:
    connection = await asyncpg.connect(database_url)
    yield connection
    await connection.close()


async def prepared(connection: "asyncpg.Connection[Any]", text: str) -> tuple[list[str], set[str]]:
    statement = await connection.prepare(text)
    return (
        [
            f"{each.name[:-2]}[]" if each.kind == "array" else each.name
            for each in statement.get_parameters()
        ],
        {each.name for each in statement.get_attributes()},
    )


async def test_every_statement_is_prepared(connection: "asyncpg.Connection[Any]") -> None:
    failed: list[str] = []
    for place, statement in calls.prepared(SOURCES):
        try:
            await prepared(connection, statement.text)
        except asyncpg.PostgresError as error:
            failed.append(f"{place}: {error}")

    assert not failed


async def test_arguments_and_columns_are_those_of_the_statement(
    connection: "asyncpg.Connection[Any]",
) -> None:
    found: list[str] = []
    for call in calls.find(SOURCES):
        is_whole = "$part" not in call.text
        if is_whole and call.text.split()[0] in {"SELECT", "INSERT", "UPDATE", "DELETE", "WITH"}:
            parameters, columns = await prepared(connection, call.text)
            found += [f"{call.place}: {each}" for each in differences(call, parameters, columns)]

    assert not found


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("organization_id, project.name", "2 arguments for 3 parameters"),
        ("organization_id, project.name, project.name", "str for $3, which is uuid"),
        ("organization_id, project.id, project.name", "project.id for $2, which is for name"),
        ("*both(project), project.name, 1", "4 arguments for 3 parameters"),
    ],
)
async def test_an_argument_that_does_not_fit_is_found(
    connection: "asyncpg.Connection[Any]", arguments: str, said: str
) -> None:
    text = PLANT.replace("ARGUMENTS", arguments)
    (call,) = calls.find([Source.parse("src/tollhouse/admin/planted.py", text)])
    found = differences(call, *await prepared(connection, call.text))

    assert said in found
    assert "column title" in found


async def test_functions_of_the_database_have_no_findings(
    connection: "asyncpg.Connection[Any]",
) -> None:
    if not await connection.fetchval(
        "SELECT EXISTS (SELECT FROM pg_available_extensions WHERE name = $1)", EXTENSION
    ):
        pytest.skip(f"{EXTENSION} is missing: `bash .ci/run services` installs it")
    await connection.execute(f"CREATE EXTENSION {EXTENSION}")

    await connection.execute(PLANTED_FUNCTION)

    found = {tuple(each) for each in await connection.fetch(FINDINGS)}

    assert PLANTED_FINDING in found
    assert found - {PLANTED_FINDING} <= ACCEPTED
