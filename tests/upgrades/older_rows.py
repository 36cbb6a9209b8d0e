"""Rows as each schema revision accepts them, so that upgrades start with data in every table."""

from collections.abc import Mapping
from datetime import UTC, datetime
from uuid import UUID

Row = Mapping[str, object]
Change = str | tuple[str, Row]
"""A statement, or a table and a new row of it."""

NOW = datetime.now(UTC).replace(microsecond=0)
DAY = str(NOW.date())
AT = NOW.isoformat()
LONG_AGO = "2026-01-01T00:00:00+00:00"
DIGEST = "\\x0102"


def _id(number: int) -> str:
    return str(UUID(int=number))


ORG, PROJECT, KEY, ADMIN, POLICY, DRAFT = (_id(number) for number in range(1, 7))
SETTLED, OPEN, WRITTEN_OFF, WORKER, LATER_ORG, GRANT = (_id(number) for number in range(7, 13))

_OWNER: Row = {"organization_id": ORG}
_PAYER: Row = {**_OWNER, "project_id": PROJECT, "api_key_id": KEY}
_USE: Row = {
    "requests": 1,
    "input_tokens": 2,
    "cached_input_tokens": 0,
    "output_tokens": 3,
    "images": 0,
    "input_pico": 4,
    "cached_input_pico": 0,
    "output_pico": 6,
    "image_pico": 0,
    "request_pico": 0,
}
_RULE: Row = {
    "rule": "Is it?",
    "direction": "both",
    "mode": "enforcing",
    "scope": "projects",
    "project_ids": [PROJECT],
}
_POLICY: Row = {
    **_OWNER,
    **_RULE,
    "name": "n",
    "description": "",
    "revision": 1,
    "base_version": 0,
    "created_at": AT,
    "updated_at": AT,
}
_ENTRY: Row = {
    **_PAYER,
    "admitted_day": DAY,
    "admitted_at": AT,
    "deadline_at": AT,
    "model": "m",
    "price_revision": 1,
    "instance_id": WORKER,
    "bills_without_answer": False,
    "held_pico": 10,
    "recorded_at": AT,
}
_JUDGED: Row = {
    **_PAYER,
    "day": DAY,
    "request_id": SETTLED,
    "direction": "request",
    "mode": "enforcing",
}


_AUDITED: Row = {
    **_OWNER,
    "occurred_at": AT,
    "actor_type": "operator",
    "action": "project.create",
    "resource_type": "project",
    "resource_id": "p",
    "changes": {"name": ["", "p"]},
}


def _entry(reservation: str, phase: int, kind: str, **more: int) -> tuple[str, Row]:
    row = {**_ENTRY, "reservation_id": reservation, "phase": phase, "kind": kind, **more}
    return "ledger_entries", row


def _partition(table: str) -> str:
    """The statement of a partition for the day of all rows."""
    name = f"{table}_{DAY.replace('-', '')}"
    return (
        f"CREATE TABLE IF NOT EXISTS {name} PARTITION OF {table}"
        f" FOR VALUES FROM ('{DAY}') TO ('{DAY}'::date + 1)"
    )


ROWS: Mapping[str, tuple[Change, ...]] = {
    "0001": (
        ("organizations", {"id": ORG, "name": "a", "status": "active", "created_at": AT}),
        ("projects", {**_OWNER, "id": PROJECT, "name": "p", "created_at": AT}),
        (
            "project_keys",
            {
                **_OWNER,
                "id": KEY,
                "project_id": PROJECT,
                "name": "k",
                "created_at": AT,
                "redacted_value": "thp_abcd...wxyz",
                "permissions": ["all"],
            },
        ),
        (
            "admin_keys",
            {
                **_OWNER,
                "id": ADMIN,
                "name": "k",
                "created_at": AT,
                "redacted_value": "tha_abcd...wxyz",
                "permissions": ["all"],
            },
        ),
        (
            "key_directory",
            {
                **_OWNER,
                "digest": DIGEST,
                "pepper_version": 1,
                "key_kind": "project",
                "key_id": KEY,
            },
        ),
        ("peppers", {"version": 1, "check_digest": DIGEST, "first_used_at": AT}),
        ("data_keys", {"day": DAY, "wrapped": DIGEST}),
        ("job_leases", {"name": "a job", "holder": WORKER, "expires_at": LONG_AGO}),
        (
            "instances",
            {
                "id": WORKER,
                "started_at": LONG_AGO,
                "heartbeat_at": LONG_AGO,
                "pepper_versions": [1],
            },
        ),
        ("audit_log", {**_AUDITED, "id": _id(20)}),
        (
            "idempotency_records",
            {
                **_OWNER,
                "idempotency_key": "i",
                "fingerprint": DIGEST,
                "created_at": AT,
                "resource_id": PROJECT,
                "creator_id": ADMIN,
                "sealed": DIGEST,
                "sealed_day": DAY,
            },
        ),
    ),
    "0002": (
        ("policies", {**_POLICY, "id": DRAFT, "state": "draft"}),
        ("policies", {**_POLICY, "id": POLICY, "state": "draft", "name": "published"}),
        (
            "policy_versions",
            {
                **_OWNER,
                **_RULE,
                "policy_id": POLICY,
                "version": 1,
                "published_at": AT,
                "threshold_in_force_basis_points": 5000,
            },
        ),
        "UPDATE policies SET state = 'enforcing', current_version = 1 WHERE name = 'published'",
        ("policy_targets", {**_OWNER, "policy_id": POLICY, "project_id": PROJECT}),
    ),
    "0003": (
        (
            "organizations",
            {"id": LATER_ORG, "name": "b", "status": "suspended", "created_at": AT},
        ),
        """
        UPDATE accounts
           SET credit_pico = 100, ceiling_pico = 100, settled_pico = 10, reserved_pico = 10,
               absorbed_unknown_pico = 10
        """,
        (
            "credit_grants",
            {
                **_OWNER,
                "id": GRANT,
                "kind": "promotional",
                "amount_pico": 100,
                "reason": "r",
                "actor_type": "operator",
                "created_at": AT,
            },
        ),
        ("price_revisions", {"digest": DIGEST, "prices": {"m": 1}, "created_at": AT}),
        _entry(SETTLED, 0, "reserve"),
        _entry(SETTLED, 1, "post", posted_pico=10, input_pico=4, output_pico=6, input_tokens=2),
        _entry(OPEN, 0, "reserve"),
        _entry(WRITTEN_OFF, 0, "reserve"),
        _entry(WRITTEN_OFF, 1, "absorb", unknown_pico=10),
        (
            "unsettled_holds",
            {
                **_PAYER,
                "admitted_day": DAY,
                "reservation_id": OPEN,
                "held_pico": 10,
                "admitted_at": AT,
                "unsettled_at": AT,
                "decide_at": AT,
            },
        ),
        ("cost_daily", {**_PAYER, **_USE, "day": DAY, "model": "m"}),
        ("cost_hourly", {**_PAYER, **_USE, "hour": AT, "model": "m"}),
        (
            "ledger_closings",
            {
                **_PAYER,
                **_USE,
                "admitted_day": "2026-01-01",
                "model": "m",
                "excess_pico": 0,
                "unknown_pico": 0,
            },
        ),
        ("closed_days", {"day": "2026-01-01", "closed_at": AT}),
        (
            "operator_decisions",
            {
                **_OWNER,
                "admitted_day": DAY,
                "reservation_id": WRITTEN_OFF,
                "reason": "r",
                "kind": "release",
                "actor_type": "operator",
                "decided_at": AT,
            },
        ),
        ("reaped_instances", {"instance_id": WORKER, "reaped_at": AT}),
        "INSERT INTO reaper_progress (checked_until) VALUES (now()) ON CONFLICT DO NOTHING",
        (
            "spending_alerts",
            {
                **_OWNER,
                "scope": "credit",
                "scope_id": ORG,
                "window_start": DAY,
                "raised_at": AT,
            },
        ),
        (
            "spending_caps",
            {
                **_OWNER,
                "scope": "project",
                "scope_id": PROJECT,
                "period": "month",
                "limit_pico": 100,
                "alert_percent": 80,
            },
        ),
        (
            "spending_counters",
            {
                **_OWNER,
                "scope": "project",
                "scope_id": PROJECT,
                "window_start": DAY,
                "settled_pico": 10,
                "reserved_pico": 10,
                "limit_pico": 100,
                "ceiling_pico": 100,
                "alert_pico": 80,
            },
        ),
    ),
    "0004": (("organization_checks", {**_OWNER, "check_name": "c", "granted_at": AT}),),
    "0005": (
        (
            "rate_limits",
            {
                **_OWNER,
                "scope": "project",
                "scope_id": PROJECT,
                "owner": "organization",
                "requests_per_minute": 5,
            },
        ),
    ),
    "0006": (
        _partition("requests"),
        (
            "requests",
            {
                **_PAYER,
                "day": DAY,
                "request_id": SETTLED,
                "operation": "chat",
                "started_at": AT,
                "status": 502,
                "error_code": "e",
                "culprit": "backend",
                "is_stream": False,
                "total_ms": 5.5,
            },
        ),
        (
            "request_hours",
            {
                **_PAYER,
                "hour": AT,
                "model": "m",
                "status": 502,
                "error_code": "e",
                "requests": 1,
                "input_tokens": 0,
                "cached_input_tokens": 0,
                "output_tokens": 0,
                "total_ms": 5.5,
                "latency_counts": [0] * 10,
            },
        ),
    ),
    "0007": (
        _partition("examinations"),
        _partition("policy_decisions"),
        (
            "examinations",
            {
                **_JUDGED,
                "examined_at": AT,
                "judging_ms": 1.5,
                "characters": 9,
                "policy_ids": [POLICY],
                "versions": [1],
                "outcomes": ["match"],
                "scores": [9000],
            },
        ),
        (
            "policy_decisions",
            {
                **_JUDGED,
                "policy_id": POLICY,
                "version": 1,
                "outcome": "match",
                "threshold": 5000,
                "windows": 1,
                "is_cached": False,
                "examined_at": AT,
            },
        ),
        (
            "policy_days",
            {
                **_OWNER,
                "policy_id": POLICY,
                "day": DAY,
                "version": 1,
                "mode": "enforcing",
                "direction": "request",
                "outcome": "match",
                "bin": 90,
                "decisions": 1,
            },
        ),
    ),
    "0026": (
        (
            "attribution_values",
            {
                **_OWNER,
                "id": SETTLED,
                "day": "2026-01-01",
                "dimension": "user",
                "value": "someone",
            },
        ),
        (
            "request_attributions",
            {
                **_OWNER,
                "dimension": "user",
                "request_id": SETTLED,
                "day": "2026-01-01",
                "value_id": SETTLED,
            },
        ),
    ),
    "0023": (
        (
            "exported_days",
            {
                "location": "file:///a",
                "exported_table": "costs",
                "day": "2026-01-01",
                "row_count": 1,
                "size_bytes": 1,
                "sums": {},
                "files": {},
                "exported_at": AT,
                "checked_at": AT,
            },
        ),
    ),
    "0018": (
        (
            "archived_days",
            {
                "archived_table": "requests",
                "day": "2026-01-01",
                "location": "file:///a",
                "row_count": 1,
                "size_bytes": 1,
                "sums": {},
                "files": {},
                "archived_at": AT,
            },
        ),
        ("record_gaps", {"first_at": AT, "last_at": AT, "records": 1}),
    ),
    "0021": (
        (
            "verified_days",
            {
                **_OWNER,
                "day": "2026-01-01",
                "excess_pico": 0,
                "unknown_pico": 0,
                "costs_digest": "",
                "verified_at": AT,
            },
        ),
        ("ledger_verifications", {**_OWNER, "begun_at": AT, "verified_at": AT, "differences": 0}),
    ),
    "0022": (
        (
            "console_sessions",
            {
                "id": WORKER,
                "secret_digest": DIGEST,
                "owner_id": ADMIN,
                "key_digest": DIGEST,
                "groups": "{}",
                "organization_ids": f"{{{ORG}}}",
                "created_at": AT,
                "expires_at": AT,
            },
        ),
    ),
    "0024": (
        (
            "alert_subscriptions",
            {
                **_OWNER,
                "id": SETTLED,
                "name": "n",
                "url": "https://receiver.example/",
                "emails": [],
                "cap_percents": [80],
                "credit_percents": [80],
                "backend_down": False,
                "created_at": AT,
            },
        ),
        (
            "alert_deliveries",
            {
                **_OWNER,
                "id": OPEN,
                "subscription_id": SETTLED,
                "type": "test",
                "dedup_key": "d",
                "details": "{}",
                "raised_at": AT,
                "state": "pending",
                "attempts": 0,
                "next_attempt_at": AT,
            },
        ),
    ),
    # A trigger writes its rows of the chain.
    "0028": (("audit_log", {**_AUDITED, "id": _id(21)}),),
    "0029": (
        (
            "replica_reports",
            {
                "instance_id": WORKER,
                "backend": "b",
                "replica": "b-1",
                "model": "m",
                "state": "ejected",
                "why": "answered 503",
            },
        ),
        (
            "replica_orders",
            {"backend": "b", "replica": "b-1", "is_ejected": True, "ordered_at": AT},
        ),
    ),
    "0030": (("alert_hours", {**_OWNER, "hour": AT, "attempts": 1}),),
}
"""What each revision's release would have written into the tables that the revision adds."""
