"""A table belongs to one package; other packages use it only where an exception says why."""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping

from tools.checks import sql
from tools.checks.source import Finding, Findings, Source

_TABLES_OF = {
    "activity": ("requests", "request_hours", "record_gaps"),
    "alerts": ("alert_subscriptions", "alert_deliveries", "alert_hours", "alert_reached"),
    "archive": ("archived_days",),
    "backends": ("replica_reports", "replica_orders"),
    "decisions": ("evaluations", "policy_decisions", "policy_days"),
    "keys": ("project_keys", "admin_keys", "key_directory"),
    "ledger": (
        *("accounts", "credit_grants", "spending_caps", "spending_counters", "spending_alerts"),
        *("ledger_entries", "ledger_closings", "closed_days", "unsettled_holds", "cost_daily"),
        *("cost_hourly", "operator_decisions", "price_revisions", "reaped_instances"),
        *("reaper_progress", "verified_days", "ledger_verifications"),
    ),
    "limits": ("rate_limits",),
    "organizations": ("organizations", "organization_checks"),
    "policies": ("policies", "policy_versions", "policy_targets"),
    "projects": ("projects",),
    "sessions": ("console_sessions",),
    "storage": (
        *("audit_chain", "audit_heads", "audit_log", "data_keys", "idempotency_records"),
        *("instances", "job_leases", "schema_texts"),
    ),
}
OWNERS = {table: package for package, tables in _TABLES_OF.items() for table in tables}

_SCOPE = "checks that the filter or limit names the organization's own"
_LOOKUP = "one query finds a key with all that authentication needs"
_REPORT = "reports only read, and join names to sums"
_MOVE = "one list says what becomes of each table when an organization moves"
_DOCTOR = "the operator's status commands only read"
EXCEPTIONS = {
    ("activity", "projects", "read"): _SCOPE,
    ("activity", "project_keys", "read"): _SCOPE,
    ("archive", "ledger_closings", "read"): "archived entries are compared with their closings",
    ("cli", "closed_days", "read"): _MOVE,
    ("cli", "data_keys", "read"): _DOCTOR,
    ("cli", "idempotency_records", "read"): _DOCTOR,
    ("cli", "instances", "read"): _DOCTOR,
    ("cli", "job_leases", "read"): _DOCTOR,
    ("cli", "ledger_entries", "read"): _MOVE,
    ("cli", "price_revisions", "read"): _MOVE,
    ("decisions", "policies", "read"): "decisions are shown with the policy's present name",
    ("keys", "organization_checks", "read"): _LOOKUP,
    ("keys", "organizations", "read"): _LOOKUP,
    ("keys", "projects", "read"): _LOOKUP,
    ("keys", "rate_limits", "read"): _LOOKUP,
    ("ledger", "instances", "read"): "the reaper finds the holds of lost workers",
    ("ledger", "project_keys", "read"): _SCOPE,
    ("ledger", "projects", "read"): _SCOPE,
    ("limits", "organizations", "read"): "locks the organization while its limits change",
    ("limits", "project_keys", "read"): _SCOPE,
    ("limits", "projects", "read"): _SCOPE,
    ("policies", "organizations", "read"): "the policy version is read with the policies",
    ("policies", "organizations", "write"): "raises the policy version with every change",
    ("policies", "projects", "read"): _SCOPE,
    ("ledger", "organizations", "read"): "each is verified, also one without its account",
    ("reports", "closed_days", "read"): _REPORT,
    ("reports", "cost_daily", "read"): _REPORT,
    ("reports", "cost_hourly", "read"): _REPORT,
    ("reports", "ledger_entries", "read"): _REPORT,
    ("reports", "organizations", "read"): _REPORT,
    ("reports", "project_keys", "read"): _REPORT,
    ("reports", "projects", "read"): _REPORT,
    ("reports", "unsettled_holds", "read"): _REPORT,
    ("storage", "organizations", "read"): "locks the organization while a quota is checked",
}
"""Uses of another package's table: (package, table, read or write) and the reason."""

MIGRATIONS = ("storage", "migrations")
"""Parts of old definitions stand here, and statements that change many tables."""
_PATTERNS = {
    "write": re.compile(
        r"\b(?:INSERT INTO|(?<!DO )(?<!FOR )(?<!KEY )UPDATE|DELETE FROM)\s+(\w+)", re.ASCII
    ),
    "read": re.compile(r"\b(?<!DELETE )(?:FROM|JOIN)\s+(\w+)", re.ASCII),
}
FORMER_NAMES = frozenset({"examinations"})
"""Tables that a later migration renamed."""
FOREIGN = "{package} {use}s {table}, which belongs to {owner}: call {owner}, or name an exception"
NO_OWNER = "table {table} has no owner in tools/checks/tables.py"
NOT_NEEDED = "exception ({package}, {table}, {use}) is not needed any more: remove it"

Uses = Mapping[tuple[str, str, str], str]


def check(sources: Iterable[Source], exceptions: Uses = EXCEPTIONS) -> Findings:
    """Find uses of another package's table without an exception, and exceptions without a use."""
    needed: set[tuple[str, str, str]] = set()
    examined = 0
    for source in sources:
        statements = sql.statements(source)
        created = [(each.node, table) for each in statements for table in sql.tables([each])]
        yield from (
            source.finding(node, NO_OWNER.format(table=table))
            for node, table in created
            if table not in OWNERS and table not in FORMER_NAMES
        )
        examined += len(created)
        for node, table, use in _uses(source, statements):
            examined += 1
            package, owner = source.module[0], OWNERS[table]
            if package == owner:
                continue
            needed.add((package, table, use))
            if (package, table, use) not in exceptions:
                message = FOREIGN.format(package=package, use=use, table=table, owner=owner)
                yield source.finding(node, message)
    for package, table, use in exceptions.keys() - needed:
        message = NOT_NEEDED.format(package=package, table=table, use=use)
        yield Finding(path="tools/checks/tables.py", line=1, message=message)
    return examined


def _uses(
    source: Source, statements: Iterable[sql.Statement]
) -> Iterator[tuple[ast.Constant, str, str]]:
    """Yield the tables in a file's text literals, with how they are used.

    Functions of the database belong to no package: they are there to join its tables. First rows
    stand in the file that creates their table.
    """
    is_schema = source.is_sql and any(each.is_schema for each in statements)
    if is_schema or source.module[:2] == MIGRATIONS:
        return
    schema = {id(node) for each in statements if each.is_schema for node in ast.walk(each.node)}
    for node in source.nodes:
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in schema
        ):
            for use, pattern in _PATTERNS.items():
                for table in pattern.findall(node.value):
                    if table in OWNERS:
                        yield node, table, use
