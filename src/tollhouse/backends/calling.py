"""One call to whichever replica answers: attempts, failover, and what each status means (OQ-48)."""

import logging
import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from tollhouse.backends import rules
from tollhouse.backends.decoding import complaint
from tollhouse.backends.errors import (
    BackendBusy,
    BackendDeniedUs,
    BackendDown,
    BackendError,
    BackendFailed,
    BackendHungUp,
    BackendNonsense,
    BackendRejected,
    BackendUnreachable,
    NoReplica,
    Repeat,
)
from tollhouse.backends.routing import Lease, Replica, Replicas
from tollhouse.backends.rules import RetryBudget
from tollhouse.backends.transport import Response, Transport
from tollhouse.backends.transport_errors import (
    ConnectionBroken,
    NotConnected,
    NotHttp,
    TransportError,
)
from tollhouse.backends.types import Ask, BackendConfig
from tollhouse.observability.metrics import BackendMetrics

logger = logging.getLogger("tollhouse.backends")

REFUSAL_BYTES_MAX = 65_536
_SECONDS = re.compile(r"[0-9]{1,9}")
_OK = 200
_BUSY = 429
_ABOUT_THE_REQUEST = frozenset({400, 413, 422})
_DENIALS = range(300, 500)
_ENGINE_ABSENT = frozenset({502, 503, 504})


class Caller:
    """One per backend and worker."""

    def __init__(
        self,
        config: BackendConfig,
        transport: Transport,
        replicas: Replicas,
        metrics: BackendMetrics,
    ) -> None:
        self._config = config
        self._transport = transport
        self._replicas = replicas
        self._metrics = metrics
        self._budget = RetryBudget()

    async def open(
        self, ask: Ask, headers: Mapping[str, str], tried: list[Replica]
    ) -> tuple[Lease, Response]:
        """Get a 200 from some replica. `tried` grows by each replica that was turned to.

        The caller ends the lease and closes the response.
        """
        self._budget.earn()
        lease = self._replicas.take(ask.affinity)
        if lease is None:
            raise NoReplica
        while True:
            tried.append(lease.replica)
            try:
                return lease, await self._attempt(lease, ask, headers)
            except BackendError as failure:
                lease.end()
                lease = self._next(ask, tried, failure)
                if lease is None:
                    raise
            except BaseException:
                lease.end()
                raise

    def _next(self, ask: Ask, tried: list[Replica], failure: BackendError) -> Lease | None:
        """Who is asked after this failure, if anybody."""
        bills = self._config.bills_without_answer
        if not rules.may_repeat(failure, attempts=len(tried), bills_without_answer=bills):
            return None
        may_be_same = failure.repeat is Repeat.ANYWHERE
        lease = self._replicas.take(ask.affinity, tried=tried, may_be_same=may_be_same)
        if lease is None:
            return None
        if not self._budget.spend():
            lease.end()
            return None
        self._metrics.retried()
        return lease

    async def _attempt(self, lease: Lease, ask: Ask, headers: Mapping[str, str]) -> Response:
        replica = lease.replica
        try:
            response = await self._send(replica, ask, headers)
            if response.status == _OK:
                return response
            raise await self._failure(replica, response)
        except BackendError as failure:
            if failure.blames_replica:
                lease.failed()
            else:
                lease.answered()
            raise

    async def _send(self, replica: Replica, ask: Ask, headers: Mapping[str, str]) -> Response:
        base = replica.host_url if ask.is_at_host else replica.url
        try:
            return await self._transport.open(
                "POST",
                base + ask.path,
                headers=headers,
                body=ask.body,
                connect_seconds=self._config.connect_seconds,
            )
        except NotConnected:
            raise BackendUnreachable(replica=replica.url) from None
        except ConnectionBroken:
            raise BackendHungUp(replica=replica.url) from None
        except NotHttp:
            raise BackendNonsense(replica=replica.url) from None

    async def _failure(self, replica: Replica, response: Response) -> BackendError:
        """What an answer means that is not 200; its connection is given back or cut."""
        try:
            return await self._meaning(replica, response)
        finally:
            response.close()

    async def _meaning(self, replica: Replica, response: Response) -> BackendError:
        status = response.status
        if status in _ABOUT_THE_REQUEST:
            return BackendRejected(await self._said(replica, response), replica=replica.url)
        if status == _BUSY:
            wait_seconds = _whole_seconds(response.header("retry-after"))
            return BackendBusy(replica=replica.url, retry_after_seconds=wait_seconds)
        logger.warning(
            "backend_refused",
            extra={"backend": self._config.name, "replica": replica.url, "status": status},
        )
        if status in _ENGINE_ABSENT:
            return BackendDown(replica=replica.url)
        if status in _DENIALS:
            return BackendDeniedUs(replica=replica.url)
        return BackendFailed(replica=replica.url)

    async def _said(self, replica: Replica, response: Response) -> str | None:
        try:
            body = await response.read(REFUSAL_BYTES_MAX)
        except TransportError:
            return None
        parts = urlsplit(replica.url)
        hidden = [self._config.api_key, parts.netloc, parts.hostname]
        return complaint(body, hidden=[text for text in hidden if text])


def _whole_seconds(header: str | None) -> int | None:
    """The other form, a date, is left alone: clocks differ."""
    return int(header) if header is not None and _SECONDS.fullmatch(header) else None
