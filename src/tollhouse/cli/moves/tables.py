"""What becomes of each table when an organization moves to the database of another cell.

A row is moved as a line: its JSON, in which numbers that only one database knows are replaced by
what both know. So the lines of an organization are equal in two databases if, and only if, its rows
are. Columns and keys come from the catalog of the database.
"""

import hashlib
from collections.abc import AsyncGenerator, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from itertools import islice
from typing import Final, LiteralString, cast

import msgspec
from msgspec import Struct

from tollhouse.base.ids import OrganizationId
from tollhouse.storage.database import Transaction

LINES_MAX: Final = 500
"""How many lines are read or written at once."""
NEVER: Final = "9999-12-31 UTC"


class Earlier(Enum):
    """What an import does with rows of an earlier copy."""

    REMOVE = "remove"
    OVERWRITE = "overwrite"
    KEEP = "keep"


@dataclass(frozen=True, kw_only=True, slots=True)
class MovedTable:
    """A table whose rows move. Columns in `stays` do not; `arrives` are values set in the new cell.

    `rows` says which rows move. `common` replaces numbers of one database (t is the row), and
    `numbers` takes their place in the other one (l.line is the line).
    """

    earlier: Earlier = Earlier.REMOVE
    stays: tuple[str, ...] = ()
    arrives: Mapping[str, str] = field(default_factory=dict[str, str])
    rows: LiteralString = "t.organization_id = $1"
    common: LiteralString = "'{}'::jsonb"
    numbers: LiteralString = "'{}'::jsonb"


_OF_OPEN_DAY: Final = (
    "t.organization_id = $1 AND NOT EXISTS (SELECT FROM closed_days c WHERE c.day = t.admitted_day)"
)
_OF_OPEN_ENTRIES: Final = (
    f"t.id IN (SELECT price_revision FROM ledger_entries t WHERE {_OF_OPEN_DAY})"  # noqa: S608
)
_OVERWRITTEN: Final = MovedTable(earlier=Earlier.OVERWRITE)
_ADDED: Final = MovedTable(earlier=Earlier.KEEP)
_REPLACED: Final = MovedTable()

MOVED: Final[Mapping[str, MovedTable]] = {
    # Until the organization is activated, it is frozen in the new cell.
    "organizations": MovedTable(
        earlier=Earlier.OVERWRITE,
        rows="t.id = $1",
        stays=("move_id", "move_cell", "move_state", "frozen_until"),
        arrives={"move_state": "arriving", "frozen_until": NEVER},
    ),
    "organization_checks": _REPLACED,
    "projects": _OVERWRITTEN,
    "project_keys": _OVERWRITTEN,
    "admin_keys": _OVERWRITTEN,
    "key_directory": _REPLACED,
    "policies": _OVERWRITTEN,
    "policy_versions": _ADDED,
    "policy_targets": _REPLACED,
    "rate_limits": _REPLACED,
    "accounts": MovedTable(
        earlier=Earlier.OVERWRITE,
        stays=("frozen_until",),
        arrives={"frozen_until": NEVER},
    ),
    "credit_grants": _ADDED,
    "spending_caps": _REPLACED,
    "spending_counters": _REPLACED,
    "spending_alerts": MovedTable(stays=("id",)),
    "price_revisions": MovedTable(
        earlier=Earlier.KEEP,
        stays=("id", "created_at"),
        rows=_OF_OPEN_ENTRIES,
    ),
    "ledger_entries": MovedTable(
        earlier=Earlier.KEEP,
        rows=_OF_OPEN_DAY,
        common="""jsonb_build_object('price_revision', (
            SELECT p.digest FROM price_revisions p WHERE p.id = t.price_revision))""",
        numbers="""jsonb_build_object('price_revision', coalesce((
            SELECT p.id FROM price_revisions p
             WHERE p.digest = decode(substr(l.line ->> 'price_revision', 3), 'hex')), 0))""",
    ),
    "unsettled_holds": _REPLACED,
    "operator_decisions": _ADDED,
    "cost_daily": _REPLACED,
    "cost_hourly": _REPLACED,
    "ledger_closings": _ADDED,
    # Without secrets, which no other cell opens: webhooks fail until theirs is rotated.
    "alert_subscriptions": MovedTable(stays=("secret", "previous_secret", "previous_secret_until")),
    "alert_reached": _REPLACED,
    "audit_log": _ADDED,
    "audit_chain": _ADDED,
    "audit_heads": _REPLACED,
    # A value that can be replayed for a day is encrypted for its own cell.
    "idempotency_records": MovedTable(stays=("sealed", "sealed_day")),
}
"""In the order of their foreign keys."""
MONEY: Final = frozenset(
    {
        *("accounts", "credit_grants", "spending_caps", "spending_counters", "price_revisions"),
        *("ledger_entries", "unsettled_holds", "operator_decisions", "cost_daily", "cost_hourly"),
        "ledger_closings",
    }
)
"""Those that must not change once they were copied."""
DERIVED: Final = frozenset({"closed_days", "ledger_verifications", "verified_days"})
"""What a cell knows of an organization from the rows that arrive."""
LEFT: Final = frozenset(
    {
        # Records of requests, decisions and alerts, which the operator reads in the old cell.
        *("requests", "request_hours", "record_gaps", "evaluations", "policy_decisions"),
        *("policy_days", "alert_deliveries", "alert_hours", "archived_days"),
        # Of the cell itself.
        *("console_sessions", "data_keys", "instances", "job_leases"),
        *("reaped_instances", "reaper_progress", "replica_orders", "replica_reports"),
        *("schema_contracted", "schema_expanded", "schema_texts"),
    }
)


class TableDigest(Struct, frozen=True, kw_only=True):
    """The number of an organization's rows in a table, and the SHA-256 of their lines."""

    name: str
    rows: int
    sha256: str


async def lines_of(
    tx: Transaction, organization_id: OrganizationId, name: str
) -> AsyncGenerator[str]:
    """Yield the organization's lines, in an order that does not depend on the database."""
    table, form = MOVED[name], await _form(tx, name)
    statement = f"""
        SELECT (to_jsonb(t) - $2::text[] || {table.common})::text AS line
          FROM {name} t WHERE {table.rows} ORDER BY {form.order}
    """  # noqa: S608 - names of the catalog
    arguments = (organization_id, table.stays)
    async for rows in tx.stream(_literal(statement), *arguments, rows_at_once=LINES_MAX):
        for row in rows:
            yield row["line"]


async def digest_of(tx: Transaction, organization_id: OrganizationId, name: str) -> TableDigest:
    """Return the digest of the organization's rows as they are."""
    rows, digest = 0, hashlib.sha256()
    async for line in lines_of(tx, organization_id, name):
        rows += 1
        digest.update(line.encode() + b"\n")
    return TableDigest(name=name, rows=rows, sha256=digest.hexdigest())


async def replace(
    tx: Transaction, organization_id: OrganizationId, name: str, lines: Iterable[str]
) -> None:
    """Write lines, in place of the organization's earlier rows where these can be removed."""
    table, form = MOVED[name], await _form(tx, name)
    if table.earlier is Earlier.REMOVE:
        remove = f"DELETE FROM {name} t WHERE {table.rows}"  # noqa: S608 - names of the catalog
        await _run(tx, _literal(remove), organization_id)
    is_overwritten = table.earlier is Earlier.OVERWRITE
    conflict = f"({form.key}) DO UPDATE SET {form.updates}" if is_overwritten else "DO NOTHING"
    write = f"""
        INSERT INTO {name} ({form.columns})
        SELECT {form.columns}
          FROM (SELECT line::jsonb AS line FROM unnest($1::text[]) line) l
         CROSS JOIN LATERAL jsonb_populate_record(
                NULL::{name}, l.line || {table.numbers} || $2::jsonb) r
            ON CONFLICT {conflict}
    """  # noqa: S608 - names of the catalog
    left, arrives = iter(lines), msgspec.json.encode(table.arrives).decode()
    while batch := list(islice(left, LINES_MAX)):
        await _run(tx, _literal(write), batch, arrives)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Form:
    key: str
    order: str
    columns: str
    updates: str


async def _form(tx: Transaction, name: str) -> _Form:
    """Return the columns of a table that move or that an arrival sets."""
    table = MOVED[name]
    rows = await tx.fetch_all(
        """
        SELECT quote_ident(a.attname) AS name, a.attcollation <> 0 AS is_text,
               array_position(i.indkey::int2[], a.attnum) AS place
          FROM pg_attribute a
          LEFT JOIN pg_index i ON i.indrelid = a.attrelid AND i.indisprimary
         WHERE a.attrelid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped
           AND (a.attname <> ALL($2::text[]) OR a.attname = ANY($3::text[]))
         ORDER BY place, a.attnum
        """,
        name,
        table.stays,
        tuple(table.arrives),
    )
    names = [row["name"] for row in rows]
    key = [row for row in rows if row["place"] is not None]
    return _Form(
        key=", ".join(row["name"] for row in key),
        order=", ".join(
            f"t.{row['name']}" + ' COLLATE "C"' * row["is_text"] for row in key or rows
        ),
        columns=", ".join(names),
        updates=", ".join(f"{each} = EXCLUDED.{each}" for each in names),
    )


async def _run(  # all organizations: a line has its own
    tx: Transaction, statement: LiteralString, *arguments: object
) -> None:
    await tx.execute(statement, *arguments)


def _literal(statement: str) -> LiteralString:
    return cast("LiteralString", statement)
