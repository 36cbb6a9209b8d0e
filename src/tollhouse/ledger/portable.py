"""How credit, caps and open days of the ledger are moved to another cell.

A line of an entry has the digest of its price list instead of its number. Entries of closed days
are not moved; the closings that replace them are.
"""

from typing import Final

from tollhouse.storage.portable import PortableTable, portable_table

ACCOUNTS: Final = PortableTable(
    name="accounts",
    read="""
        SELECT (to_jsonb(t) - '{frozen_until,next_alert_pico}'::text[])::text AS line
          FROM accounts t
         WHERE organization_id = $1
    """,
    # Until the organization is activated, its account admits nothing here.
    write="""
        INSERT INTO accounts AS a
               (organization_id, credit_pico, settled_pico, reserved_pico, ceiling_pico,
                written_off_excess_pico, written_off_unknown_pico, is_alerted, frozen_until)
        SELECT r.organization_id, r.credit_pico, r.settled_pico, r.reserved_pico, r.ceiling_pico,
               r.written_off_excess_pico, r.written_off_unknown_pico, r.is_alerted,
               '9999-12-31 UTC'
          FROM unnest($1::text[]) line
         CROSS JOIN LATERAL jsonb_populate_record(NULL::accounts, line::jsonb) r
        ON CONFLICT (organization_id) DO UPDATE
           SET credit_pico = EXCLUDED.credit_pico, settled_pico = EXCLUDED.settled_pico,
               reserved_pico = EXCLUDED.reserved_pico, ceiling_pico = EXCLUDED.ceiling_pico,
               written_off_excess_pico = EXCLUDED.written_off_excess_pico,
               written_off_unknown_pico = EXCLUDED.written_off_unknown_pico,
               is_alerted = EXCLUDED.is_alerted, frozen_until = EXCLUDED.frozen_until
    """,
)
GRANTS: Final = portable_table("credit_grants", order="id", on_conflict="DO NOTHING")
CAPS: Final = portable_table(
    "spending_caps",
    order='scope COLLATE "C", scope_id, period COLLATE "C"',
)
COUNTERS: Final = portable_table(
    "spending_counters",
    order='scope COLLATE "C", scope_id, window_start',
)
# Numbered by each cell for itself; an alert that was noticed is not raised again.
ALERTS: Final = PortableTable(
    name="spending_alerts",
    read="""
        SELECT (to_jsonb(t) - 'id')::text AS line
          FROM spending_alerts t
         WHERE organization_id = $1
         ORDER BY raised_at, scope COLLATE "C", scope_id, window_start, period
    """,
    remove="DELETE FROM spending_alerts WHERE organization_id = $1",
    write="""
        INSERT INTO spending_alerts
               (organization_id, scope, scope_id, window_start, period, raised_at, noticed_at)
        SELECT r.organization_id, r.scope, r.scope_id, r.window_start, r.period, r.raised_at,
               r.noticed_at
          FROM unnest($1::text[]) line
         CROSS JOIN LATERAL jsonb_populate_record(NULL::spending_alerts, line::jsonb) r
    """,
)
PRICES: Final = PortableTable(
    name="price_revisions",
    read="""
        SELECT jsonb_build_object('digest', p.digest, 'prices', p.prices)::text AS line
          FROM price_revisions p
         WHERE id IN (SELECT price_revision
                        FROM ledger_entries e
                       WHERE organization_id = $1
                         AND NOT EXISTS (
                                SELECT FROM closed_days c WHERE c.day = e.admitted_day))
         ORDER BY digest
    """,
    write="""
        INSERT INTO price_revisions (digest, prices)
        SELECT r.digest, r.prices
          FROM unnest($1::text[]) line
         CROSS JOIN LATERAL jsonb_populate_record(NULL::price_revisions, line::jsonb) r
        ON CONFLICT (digest) DO NOTHING
    """,
)
ENTRIES: Final = PortableTable(
    name="ledger_entries",
    read="""
        SELECT (to_jsonb(t) || jsonb_build_object('price_revision', p.digest))::text AS line
          FROM ledger_entries t
          LEFT JOIN price_revisions p ON p.id = t.price_revision
         WHERE t.organization_id = $1
           AND NOT EXISTS (SELECT FROM closed_days c WHERE c.day = t.admitted_day)
         ORDER BY t.admitted_day, t.reservation_id, t.phase
    """,
    write="""
        INSERT INTO ledger_entries
        SELECT r.*
          FROM (SELECT line::jsonb AS entry FROM unnest($1::text[]) line) l
          LEFT JOIN price_revisions p
            ON p.digest = decode(substr(l.entry ->> 'price_revision', 3), 'hex')
         CROSS JOIN LATERAL jsonb_populate_record(
                NULL::ledger_entries,
                l.entry || jsonb_build_object('price_revision', coalesce(p.id, 0))) r
        ON CONFLICT DO NOTHING
    """,
)
UNSETTLED: Final = portable_table("unsettled_holds", order="admitted_day, reservation_id")
DECISIONS: Final = portable_table(
    "operator_decisions",
    order="admitted_day, reservation_id",
    on_conflict="DO NOTHING",
)
COST_DAILY: Final = portable_table(
    "cost_daily",
    order='day, project_id, api_key_id, model COLLATE "C"',
)
COST_HOURLY: Final = portable_table(
    "cost_hourly",
    order='hour, project_id, api_key_id, model COLLATE "C"',
)
CLOSINGS: Final = portable_table(
    "ledger_closings",
    order='admitted_day, project_id, api_key_id, model COLLATE "C"',
    on_conflict="DO NOTHING",
)

TABLES: Final = (
    *(ACCOUNTS, GRANTS, CAPS, COUNTERS, ALERTS, PRICES, ENTRIES, UNSETTLED, DECISIONS),
    *(COST_DAILY, COST_HOURLY, CLOSINGS),
)
