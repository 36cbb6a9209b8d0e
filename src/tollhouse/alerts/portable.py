"""How alert subscriptions are moved to another cell: without secrets, which no other cell opens.

Webhooks fail there until the secret is rotated, and say so.
"""

from typing import Final

from tollhouse.storage.portable import PortableTable

SUBSCRIPTIONS: Final = PortableTable(
    name="alert_subscriptions",
    read="""
        SELECT (to_jsonb(t) - '{secret,previous_secret,previous_secret_until}'::text[])::text
                   AS line
          FROM alert_subscriptions t
         WHERE organization_id = $1
         ORDER BY id
    """,
    remove="DELETE FROM alert_subscriptions WHERE organization_id = $1",
    write="""
        INSERT INTO alert_subscriptions
        SELECT r.*
          FROM unnest($1::text[]) line
         CROSS JOIN LATERAL jsonb_populate_record(NULL::alert_subscriptions, line::jsonb) r
    """,
)

TABLES: Final = (SUBSCRIPTIONS,)
