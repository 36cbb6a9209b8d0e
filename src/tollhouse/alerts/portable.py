"""How alert subscriptions are moved to another cell: without secrets, which no other cell opens.

Webhooks fail there until the secret is rotated, and say so.
"""

from typing import Final

from tollhouse.storage.portable import portable_table

SUBSCRIPTIONS: Final = portable_table(
    "alert_subscriptions",
    order="id",
    without="secret,previous_secret,previous_secret_until",
)

TABLES: Final = (SUBSCRIPTIONS,)
