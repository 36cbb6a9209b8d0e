"""One database and one gateway with a scripted backend per module; each test is a customer."""

from tests.support.own_customer import deployment
from tests.support.shared_deployment import gateway, offered, upstream
from tests.support.shared_gateway import (
    database,
    database_url,
    org,
    other_org,
    settings,
)

__all__ = [
    "database",
    "database_url",
    "deployment",
    "gateway",
    "offered",
    "org",
    "other_org",
    "settings",
    "upstream",
]
