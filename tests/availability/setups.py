"""The deployments that faults are done to."""

from collections.abc import Sequence
from dataclasses import dataclass

from tests.availability.faults import FAULTS


@dataclass(frozen=True, kw_only=True)
class Setup:
    """How many servers there are, and how the gateway reaches them."""

    words: str
    databases: int
    is_proxied: bool
    faults: Sequence[str]


SETUPS = {
    "three": Setup(
        words="Three servers, all of them in `database.url`",
        databases=3,
        is_proxied=False,
        faults=list(FAULTS),
    ),
    "proxied": Setup(
        words="Three servers behind HAProxy, whose address is in `database.url`",
        databases=3,
        is_proxied=True,
        faults=["kill_machine", "switch_over", "freeze_primary"],
    ),
    "two": Setup(
        words="Two servers, both in `database.url`",
        databases=2,
        is_proxied=False,
        faults=["kill_machine", "switch_over", "kill_standby"],
    ),
}
