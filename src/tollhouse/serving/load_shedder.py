"""Decides when a worker refuses new requests, because it has more than it can handle.

A request is pending from the moment its body is complete until it is admitted or answered. A
request that waits for a backend, for a judge or for its caller does not count. A burst passes. If
requests stay pending (as in CoDel, RFC 8289), every further one would wait as long as those before
it, and all would be late: the worker then refuses at once what it cannot handle.
"""

import logging
import math
from typing import Final

from tollhouse.base.clock import Clock
from tollhouse.observability import bound_metrics
from tollhouse.serving.refusals import Header, OverloadRefusals
from tollhouse.serving.whole_request import WholeRequestParser

PENDING_TARGET: Final = 128
"""With fewer pending requests, every new one is accepted. It is the largest batch of the ledger."""

PENDING_MAX: Final = 256
"""With this many, every new request is refused. More would occupy the event loop for so long that
refusals were late too."""

ADMIN_RESERVE: Final = 16
"""So many more may be pending before a request of administration is refused: an operator must be
able to act on an overload. Key and route are not known yet, so that the reserve has to be small."""

TARGET_BYTES_MAX: Final = 8_192
"""Requests with longer targets are read as usual, which may refuse them for their target."""

ADMIN_PATHS: Final = ("/manage/", "/v1/organization/")

BURST_SECONDS: Final = 0.1
"""How long a burst may keep `PENDING_TARGET` requests or more pending."""

CALM_SECONDS: Final = 1.0
"""How long fewer than `PENDING_TARGET` must be pending before another burst may pass."""

LOG_SECONDS_MIN: Final = 10.0
"""The least time between two log lines about refused requests."""

logger = logging.getLogger("tollhouse.serving")


class LoadShedder:
    """The pending requests of one server, counted by `pending`, and its answers to refused ones."""

    def __init__(self, clock: Clock, refusals: OverloadRefusals) -> None:
        self._clock = clock
        self.refusals = refusals
        self._whole_requests = WholeRequestParser()
        self._burst_began_seconds = -math.inf
        self._was_full_seconds = -math.inf
        self._logged_seconds = -math.inf
        self.pending = 0

    @property
    def is_full(self) -> bool:
        """Whether enough requests are pending to occupy the worker."""
        return self.pending >= PENDING_TARGET

    def must_shed(self, path: str) -> bool:
        """Return whether to refuse a request whose head has arrived now. Counts it if so."""
        if self.pending < PENDING_TARGET:
            return False
        if self.pending < PENDING_TARGET + ADMIN_RESERVE and path.startswith(ADMIN_PATHS):
            return False
        now_seconds = self._clock.monotonic_seconds()
        if now_seconds - self._was_full_seconds >= CALM_SECONDS:
            self._burst_began_seconds = now_seconds
        self._was_full_seconds = now_seconds
        is_burst = now_seconds - self._burst_began_seconds < BURST_SECONDS
        if is_burst and self.pending < PENDING_MAX:
            return False
        bound_metrics.request_shed()
        if now_seconds - self._logged_seconds >= LOG_SECONDS_MIN:
            self._logged_seconds = now_seconds
            logger.warning("requests_shed", extra={"count": self.pending})
        return True

    def refusal_of_whole(self, data: bytes, server_headers: list[Header]) -> bytes | None:
        """Return the answer to one whole request that is shed; None if it must be read as usual.

        Reading it would take longer than all the rest of a refusal. An overloaded worker refuses
        several requests for each that it answers.
        """
        if (request := self._whole_requests.parse(data)) is None:
            return None
        method, target = request
        is_plain = target.startswith(b"/") and target.isascii() and b"%" not in target
        if not is_plain or len(target) > TARGET_BYTES_MAX:
            return None
        if not self.must_shed(target.decode("ascii")):
            return None
        return self.refusals.answer(method, target, server_headers, keeps_alive=True)
