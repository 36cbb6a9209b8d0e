"""All tables of an organization: those that move with it, and those that stay."""

from typing import Final

from tollhouse.alerts import portable as alerts
from tollhouse.attribution import portable as attribution
from tollhouse.keys import portable as keys
from tollhouse.ledger import portable as ledger
from tollhouse.limits import portable as limits
from tollhouse.organizations import portable as organizations
from tollhouse.policies import portable as policies
from tollhouse.projects import portable as projects
from tollhouse.storage import portable_tables as storage

MOVING: Final = (
    *organizations.TABLES,
    *projects.TABLES,
    *keys.TABLES,
    *policies.TABLES,
    *limits.TABLES,
    *ledger.TABLES,
    *alerts.TABLES,
    *attribution.TABLES,
    *storage.TABLES,
)
"""In the order of their foreign keys."""

STAYING: Final = (
    *("requests", "request_hours", "evaluations", "policy_decisions", "policy_days"),
    *("alert_deliveries", "alert_hours"),
)
"""Records of requests, decisions and alerts, which the operator reads in the old cell."""
