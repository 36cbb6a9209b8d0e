"""The gateway of the tests of responses, for those of messages."""

from tests.responses.conftest import (
    database,
    database_url,
    deployment,
    gateway,
    offered,
    org,
    other_org,
    settings,
    upstream,
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
