"""`tollhouse requests --follow`: requests as they end, until the command is interrupted."""

import contextlib
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import click
import msgspec

from tollhouse.base.ids import first_uuid_at
from tollhouse.cli.output import visible
from tollhouse.cli.verbs import pages
from tollhouse.cli.verbs.gateway import Gateway, OperationRequest
from tollhouse.cli.verbs.shown import cell
from tollhouse.contract.report_operations import LIST_REQUESTS

POLL_SECONDS: Final = 1.0
WINDOW: Final = timedelta(minutes=15)
"""How long a request may take and still be shown when it ends: IDs tell when requests began."""
READ_MAX: Final = 500
"""The most requests that are read at once. Of a busier organization the newest are shown."""
_GAP: Final = "   "


def follow(gateway: Gateway, request: OperationRequest, *, shown_max: int, as_json: bool) -> None:
    """Show the latest requests, the oldest first, and then every new one."""
    if "end_time" in request.query:
        message = "--follow has no end: leave out --to."
        raise click.UsageError(message)
    follower = Follower(gateway, request)
    with contextlib.suppress(KeyboardInterrupt):
        _show(follower.first(shown_max), as_json=as_json)
        while True:
            time.sleep(POLL_SECONDS)
            _show(follower.following(), as_json=as_json)


class Follower:
    """Finds the requests that ended since it last looked, each of them once."""

    def __init__(self, gateway: Gateway, request: OperationRequest) -> None:
        self._gateway = gateway
        self._request = request
        self._seen: set[str] = set()

    def first(self, shown_max: int) -> list[dict[str, Any]]:
        """Return the latest requests, the oldest first. Older ones count as seen."""
        self.following()
        found = self._read(self._request, shown_max)
        self._seen.update(one["id"] for one in found)
        return found

    def following(self) -> list[dict[str, Any]]:
        """Return the requests of the window that were not returned before, the oldest first."""
        start = self._gateway.now() - WINDOW
        begin = max(int(start.timestamp()), self._request.query.get("start_time", 0))
        request = replace(self._request, query={**self._request.query, "start_time": begin})
        new = [one for one in self._read(request, READ_MAX) if one["id"] not in self._seen]
        oldest = str(first_uuid_at(start))
        self._seen = {known for known in self._seen if known >= oldest}
        self._seen.update(one["id"] for one in new)
        return new

    def _read(self, request: OperationRequest, shown_max: int) -> list[dict[str, Any]]:
        page, _ = pages.read_list(
            self._gateway, LIST_REQUESTS, request, shown_max=shown_max, after=None
        )
        return page["data"][::-1]


def _show(requests: list[dict[str, Any]], *, as_json: bool) -> None:
    for one in requests:
        click.echo(msgspec.json.encode(one) if as_json else _line(one))


def _line(one: dict[str, Any]) -> str:
    blocked = ", ".join(f"by policy '{policy['name']}'" for policy in one["blocked_by"])
    ended = " ".join(filter(None, (str(one["status"]), one["error_code"], blocked)))
    begin = datetime.fromtimestamp(one["created_at"], UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    took = f"{one['timings']['total_ms']:.0f} ms"
    cost = cell("cost", one["cost"])
    parts = (begin, one["id"], ended, one["model"] or one["operation"], took, str(cost or "-"))
    return visible(_GAP.join(parts))
