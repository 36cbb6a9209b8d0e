"""The catalog of a database, and what of it a change takes from those who used it before."""

from collections.abc import Iterator
from dataclasses import dataclass

import asyncpg
from msgspec import convert

_TABLES = """
    SELECT relname::text FROM pg_class
     WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
       AND relname NOT IN ('schema_expanded', 'schema_contracted', 'schema_texts')
"""
_COLUMNS = f"""
    SELECT c.relname || '.' || a.attname AS name, format_type(a.atttypid, a.atttypmod) AS type,
           a.attnotnull AS is_required,
           a.atthasdef OR a.attidentity <> '' AS has_default
      FROM pg_attribute a
      JOIN pg_class c ON c.oid = a.attrelid
     WHERE c.relname IN ({_TABLES}) AND c.relnamespace = 'public'::regnamespace
       AND a.attnum > 0 AND NOT a.attisdropped
"""  # noqa: S608 - constants
_FUNCTIONS = """
    SELECT p.oid::regprocedure::text AS name, pg_get_function_result(p.oid) AS type
      FROM pg_proc p
     WHERE p.pronamespace = 'public'::regnamespace
"""
_TYPES = """
    SELECT t.typname AS name,
           coalesce(
             (SELECT string_agg(a.attname || ' ' || format_type(a.atttypid, a.atttypmod), ', '
                                ORDER BY a.attnum)
                FROM pg_attribute a
               WHERE a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped),
             (SELECT string_agg(e.enumlabel, ', ' ORDER BY e.enumsortorder)
                FROM pg_enum e
               WHERE e.enumtypid = t.oid),
             '') AS type
      FROM pg_type t
      LEFT JOIN pg_class c ON c.oid = t.typrelid
     WHERE t.typnamespace = 'public'::regnamespace
       AND (c.relkind = 'c' OR t.typtype IN ('e', 'd'))
"""
_INDEXES = f"""
    SELECT c.relname || ' ' || regexp_replace(pg_get_indexdef(i.indexrelid), '^.* USING ', '')
             || CASE WHEN i.indisunique THEN ' UNIQUE' ELSE '' END AS name
      FROM pg_index i
      JOIN pg_class c ON c.oid = i.indrelid
     WHERE c.relname IN ({_TABLES}) AND c.relnamespace = 'public'::regnamespace
"""  # noqa: S608 - constants
_CONSTRAINTS = f"""
    SELECT c.relname || '.' || k.conname AS name, pg_get_constraintdef(k.oid) AS type
      FROM pg_constraint k
      JOIN pg_class c ON c.oid = k.conrelid
     WHERE c.relname IN ({_TABLES}) AND c.relnamespace = 'public'::regnamespace
       AND k.contype NOT IN ('n', 't')
"""  # noqa: S608 - constants
_TRIGGERS = f"""
    SELECT c.relname || '.' || t.tgname AS name, pg_get_triggerdef(t.oid) AS type
      FROM pg_trigger t
      JOIN pg_class c ON c.oid = t.tgrelid
     WHERE c.relname IN ({_TABLES}) AND c.relnamespace = 'public'::regnamespace
       AND NOT t.tgisinternal
"""  # noqa: S608 - constants


@dataclass(frozen=True, kw_only=True)
class Column:
    type: str
    is_required: bool
    has_default: bool


@dataclass(frozen=True, kw_only=True)
class Catalog:
    """What statements of a release can depend on."""

    tables: frozenset[str]
    columns: dict[str, Column]
    functions: dict[str, str]
    types: dict[str, str]
    indexes: frozenset[str]
    constraints: dict[str, str]
    triggers: dict[str, str]


async def catalog_of(url: str) -> Catalog:
    connection = await asyncpg.connect(url)
    try:
        return await read_catalog(connection)
    finally:
        await connection.close()


async def read_catalog(connection: "asyncpg.Connection[asyncpg.Record]") -> Catalog:
    async def pairs(sql: str) -> dict[str, str]:
        return {row["name"]: row["type"] for row in await connection.fetch(sql)}

    return Catalog(
        tables=frozenset(row["relname"] for row in await connection.fetch(_TABLES)),
        columns={row["name"]: convert({**row}, Column) for row in await connection.fetch(_COLUMNS)},
        functions=await pairs(_FUNCTIONS),
        types=await pairs(_TYPES),
        indexes=frozenset(row["name"] for row in await connection.fetch(_INDEXES)),
        constraints=await pairs(_CONSTRAINTS),
        triggers=await pairs(_TRIGGERS),
    )


def taken_away(before: Catalog, after: Catalog) -> list[str]:
    """What a release that was written for `before` misses in `after`, or is refused by it."""
    return sorted([*_missing(before, after), *_refusing(before, after)])


def _missing(before: Catalog, after: Catalog) -> Iterator[str]:
    kinds = {
        "table": (before.tables, after.tables),
        "column": (before.columns.keys(), after.columns.keys()),
        "index": (before.indexes, after.indexes),
        "trigger": (before.triggers.keys(), after.triggers.keys()),
        "constraint": (before.constraints.keys(), after.constraints.keys()),
    }
    for kind, (old, new) in kinds.items():
        yield from (f"{kind} {name} is gone" for name in old - new)
    for name in before.columns.keys() & after.columns.keys():
        column, found = before.columns[name], after.columns[name]
        if found.type != column.type:
            yield f"column {name} is {found.type} and was {column.type}"
        elif column.has_default and not found.has_default:
            yield f"column {name} has no default any more"
    for name, result in before.functions.items():
        if after.functions.get(name) != result:
            yield f"function {name} is gone or returns something else"
    for name, attributes in before.types.items():
        if after.types.get(name) != attributes:
            yield f"type {name} is gone or has other members"


def _refusing(before: Catalog, after: Catalog) -> Iterator[str]:
    for name, column in after.columns.items():
        known = before.columns.get(name)
        if name.partition(".")[0] not in before.tables or not column.is_required:
            continue
        if known is None and not column.has_default:
            yield f"column {name} is new, required and without default"
        elif known is not None and not known.is_required:
            yield f"column {name} is required now"
    for name in after.indexes - before.indexes:
        if name.partition(" ")[0] in before.tables and name.endswith(" UNIQUE"):
            yield f"index {name} is new and unique"
    for name in after.constraints.keys() - before.constraints.keys():
        if name.partition(".")[0] in before.tables:
            yield f"constraint {name} is new"
