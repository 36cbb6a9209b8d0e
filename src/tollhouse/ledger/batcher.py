"""Micro-batching of the ledger: items that arrive while a batch is in flight form the next one.

Each organization has at most one batch in flight per process, so a busy organization makes large
batches and an idle one does not wait. Organizations with a single waiting item share mixed
batches, which skip locked accounts; a skipped item goes into a batch of its organization alone,
which waits for the lock.

The process owns every item: if a caller disconnects, its item is still carried out.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from operator import attrgetter

from tollhouse.base.errors import OrganizationMoving
from tollhouse.base.ids import InstanceId, OrganizationId
from tollhouse.base.joined import fail
from tollhouse.base.tasks import Tasks, is_done
from tollhouse.ledger import batches, provable
from tollhouse.ledger.batches import AdmissionDecision, BatchResult
from tollhouse.ledger.errors import (
    CAP_ERRORS,
    AccountMissing,
    AdmissionImpossible,
    AdmissionUndecided,
    ClockIsWrong,
    CreditExhausted,
    DeadlinePassed,
    ResolutionSetAside,
)
from tollhouse.ledger.operations import record_operator_cost
from tollhouse.ledger.rules import cap_of
from tollhouse.ledger.types import (
    AdmissionVerdict,
    Hold,
    Resolution,
    ResolutionKind,
    ResolutionResult,
)
from tollhouse.observability import ledger_metrics, metrics, model_metrics
from tollhouse.storage.database import Database
from tollhouse.storage.errors import (
    ConstraintViolated,
    DatabaseUnavailable,
    LockTimedOut,
    StatementFailed,
)

logger = logging.getLogger("tollhouse.ledger")

BATCH_ITEMS_MAX = 128
MIXED_ITEMS_MAX = 64
"""Each item locks an account until the commit, so a larger batch makes others skip more."""
MIXED_BATCHES_MAX = 2
FIRST_PAUSE = timedelta(milliseconds=50)
LONGEST_PAUSE = timedelta(seconds=1)
ANSWER_WAITS_AT_MOST = timedelta(seconds=2)

_MAY_BE_STORED = attrgetter("may_be_stored")
_UNKNOWN_RESULT = (DatabaseUnavailable, LockTimedOut)
_REFUSED_BY_THE_DATABASE = (ConstraintViolated, StatementFailed)


@dataclass(eq=False, slots=True)
class _Admission:
    organization_id: OrganizationId
    hold: Hold
    done: "asyncio.Future[AdmissionDecision]"
    is_abandoned: bool = False
    may_be_stored: bool = False


@dataclass(eq=False, slots=True)
class _Settlement:
    organization_id: OrganizationId
    resolution: Resolution
    done: "asyncio.Future[ResolutionResult]"
    may_be_stored: bool = False


_Item = _Admission | _Settlement


@dataclass(eq=False, slots=True)
class _OrganizationQueue:
    """The waiting items of one organization; `is_busy` while a batch has some of its items."""

    waiting: deque[_Item] = field(default_factory=deque["_Item"])
    is_busy: bool = False
    must_wait_for_lock: bool = False


class Batcher:
    """Admits and resolves holds in batches. One per worker."""

    def __init__(
        self,
        database: Database,
        tasks: Tasks,
        instance_id: InstanceId,
        *,
        own_batches_max: int,
    ) -> None:
        self._database = database
        self._tasks = tasks
        self._instance_id = instance_id
        self._own_batches = asyncio.Semaphore(own_batches_max)
        self._queues: dict[OrganizationId, _OrganizationQueue] = {}
        self._mixed: deque[_Item] = deque()
        self._mixed_batches = 0
        model_metrics.read_queue_length("ledger", self._waiting_items)

    async def admit(self, hold: Hold, *, wait_max: timedelta, may_be_stored: bool = False) -> None:
        """Return once the hold is committed; raise the reason if it is refused.

        If the wait times out or is cancelled, the process still waits for the result, and voids the
        hold if it was admitted. `may_be_stored` is that of an earlier refusal of the same request.
        """
        done: asyncio.Future[AdmissionDecision] = asyncio.get_running_loop().create_future()
        admission = _Admission(hold.organization_id, hold, done, may_be_stored=may_be_stored)
        self._enqueue(admission)
        try:
            is_known = await is_done(admission.done, within_seconds=wait_max.total_seconds())
        except asyncio.CancelledError:
            self._abandon(admission)
            raise
        if not is_known:
            self._abandon(admission)
            raise AdmissionUndecided
        decision = admission.done.result()
        if decision.code != AdmissionVerdict.ADMITTED:
            _raise_refusal(admission, decision)

    def start_resolving(self, resolution: Resolution) -> "asyncio.Future[ResolutionResult]":
        """Resolve a hold. The process owns the returned future; a caller must not cancel it."""
        done: asyncio.Future[ResolutionResult] = asyncio.get_running_loop().create_future()
        self._enqueue(_Settlement(resolution.organization_id, resolution, done))
        return done

    def resolve(self, resolution: Resolution) -> "asyncio.Future[ResolutionResult]":
        """Resolve a hold, even if the returned future is cancelled or not awaited."""
        done = self.start_resolving(resolution)
        # Cancelling the caller cancels the future it awaits, which must not be the item's own.
        answer = asyncio.shield(done)
        # Marks the exception as retrieved; asyncio logs it otherwise if no caller awaits it.
        answer.add_done_callback(lambda future: future.cancelled() or future.exception())
        return answer

    def leave_unsettled(self, minimum: Resolution) -> None:
        """Keep a hold open until its usage is known, and store the least that it will cost."""
        self._tasks.start("ledger-unsettled", self._record_minimum(minimum))

    async def _record_minimum(self, minimum: Resolution) -> None:
        pause = FIRST_PAUSE
        while True:
            try:
                await provable.record(self._database, minimum)
            except _UNKNOWN_RESULT:
                await asyncio.sleep(pause.total_seconds())
                pause = min(2 * pause, LONGEST_PAUSE)
            else:
                return

    async def resolve_before_answer(self, resolution: Resolution) -> None:
        """Resolve a hold before an error is sent, since SDKs retry at once; wait 2 s at most."""
        answer = self.start_resolving(resolution)
        await is_done(answer, within_seconds=ANSWER_WAITS_AT_MOST.total_seconds())

    def _abandon(self, admission: _Admission) -> None:
        admission.is_abandoned = True
        if admission.done.done() and not admission.done.exception():
            self._give_back(admission)

    def _give_back(self, admission: _Admission) -> None:
        if admission.done.result().code == AdmissionVerdict.ADMITTED:
            hold = admission.hold
            self.start_resolving(
                Resolution(
                    organization_id=hold.organization_id,
                    reservation_id=hold.reservation_id,
                    admitted_day=hold.admitted_day,
                    kind=ResolutionKind.VOID,
                )
            )

    def _waiting_items(self) -> int:
        """Return how many items are in no batch yet."""
        return len(self._mixed) + sum(len(queue.waiting) for queue in self._queues.values())

    def _enqueue(self, item: _Item) -> None:
        queue = self._queues.setdefault(item.organization_id, _OrganizationQueue())
        queue.waiting.append(item)
        if not queue.is_busy:
            self._dispatch(item.organization_id, queue)

    def _dispatch(self, organization_id: OrganizationId, queue: _OrganizationQueue) -> None:
        """Send the waiting items of an organization that has no batch in flight."""
        if not queue.waiting:
            del self._queues[organization_id]
            return
        queue.is_busy = True
        if len(queue.waiting) == 1 and not queue.must_wait_for_lock:
            self._mixed.append(queue.waiting.popleft())
            self._start_mixed()
        else:
            queue.must_wait_for_lock = False
            self._tasks.start("ledger-batch", self._run_own(organization_id, queue))

    def _start_mixed(self) -> None:
        if self._mixed and self._mixed_batches < MIXED_BATCHES_MAX:
            self._mixed_batches += 1
            running = self._tasks.start("ledger-mixed", self._run_mixed())
            running.add_done_callback(self._mixed_ended)

    def _mixed_ended(self, running: "asyncio.Task[None]") -> None:
        """Start again for the items that wait behind a batch which ended by a bug."""
        self._mixed_batches -= 1
        if not running.cancelled():
            self._start_mixed()

    async def _run_own(self, organization_id: OrganizationId, queue: _OrganizationQueue) -> None:
        items: list[_Item] = []
        try:
            items = _take(queue.waiting, BATCH_ITEMS_MAX)
            await self._carry_out(items, self._send_own)
        finally:
            _fail_undone(items)
            self._release(organization_id)

    async def _run_mixed(self) -> None:
        """Carry out mixed batches until no item waits."""
        while self._mixed:
            await self._carry_out_mixed(_take(self._mixed, MIXED_ITEMS_MAX))

    async def _carry_out_mixed(self, items: Sequence[_Item]) -> None:
        try:
            await self._carry_out(items, self._send_mixed)
        except BaseException:
            _fail_undone(items)
            raise
        finally:
            for item in items:
                self._release_from_mixed(item)

    def _release_from_mixed(self, item: _Item) -> None:
        """Put a skipped item into its organization's next batch, which waits for the lock."""
        if not item.done.done():
            queue = self._queues[item.organization_id]
            queue.waiting.appendleft(item)
            queue.must_wait_for_lock = True
        self._release(item.organization_id)

    def _release(self, organization_id: OrganizationId) -> None:
        queue = self._queues[organization_id]
        queue.is_busy = False
        self._dispatch(organization_id, queue)

    async def _send_own(self, items: Sequence[_Item], *, is_retry: bool) -> BatchResult:
        # For one attempt only: a locked account must not block the others' batches.
        async with self._own_batches:
            return await self._send(items, is_retry=is_retry, skips_locked=False)

    async def _send_mixed(self, items: Sequence[_Item], *, is_retry: bool) -> BatchResult:
        return await self._send(items, is_retry=is_retry, skips_locked=True)

    async def _send(
        self, items: Sequence[_Item], *, is_retry: bool, skips_locked: bool
    ) -> BatchResult:
        return await batches.apply(
            self._database,
            [item.resolution for item in items if isinstance(item, _Settlement)],
            [item.hold for item in items if isinstance(item, _Admission)],
            instance_id=self._instance_id,
            is_retry=is_retry,
            skips_locked=skips_locked,
        )

    async def _carry_out(self, items: Sequence[_Item], send: "_Sender") -> None:
        """Send a batch until the database answers; send the items of a refused batch alone."""
        try:
            result = await self._until_answered(items, send)
        except _REFUSED_BY_THE_DATABASE as failure:
            if len(items) == 1:
                _set_aside(items[0], failure)
                return
            for item in items:
                await self._carry_out([item], send)
            return
        self._answer(items, result)

    async def _until_answered(self, items: Sequence[_Item], send: "_Sender") -> BatchResult:
        """Repeat a batch whose result is unknown, with the same IDs and instants.

        `may_be_stored` stays with an item that is skipped or sent alone later.
        """
        pause = FIRST_PAUSE
        while True:
            is_retry = any(map(_MAY_BE_STORED, items))
            metrics.ledger_batch_sent(len(items), is_retry=is_retry)
            try:
                return await send(items, is_retry=is_retry)
            except _UNKNOWN_RESULT:
                for item in items:
                    item.may_be_stored = True
                await asyncio.sleep(pause.total_seconds())
                pause = min(2 * pause, LONGEST_PAUSE)

    def _answer(self, items: Sequence[_Item], result: BatchResult) -> None:
        resolved, decisions = iter(result.resolved), iter(result.decisions)
        for item in items:
            if isinstance(item, _Settlement):
                outcome = next(resolved)
                if outcome is not None:
                    item.done.set_result(outcome)
                    _record_resolved(item.resolution, outcome)
            else:
                decision = next(decisions)
                if decision is not None:
                    item.done.set_result(decision)
                    metrics.admission_decided(decision.code)
                    if item.is_abandoned:
                        self._give_back(item)


_Sender = Callable[..., Awaitable[BatchResult]]


def _take(waiting: deque[_Item], items_max: int) -> list[_Item]:
    return [waiting.popleft() for _ in range(min(len(waiting), items_max))]


def _fail_undone(items: Sequence[_Item]) -> None:
    """Fail items without an answer, which only a stopping process or a bug can cause."""
    for item in items:
        if not item.done.done():
            fail(item.done, AdmissionUndecided())


def _set_aside(item: _Item, failure: Exception) -> None:
    """Fail a refused admission; leave the hold of a refused resolution to the reaper."""
    if isinstance(item, _Admission):
        logger.error("admission_impossible", exc_info=failure)
        fail(item.done, AdmissionImpossible())
        return
    ledger_metrics.resolution_set_aside()
    logger.error(
        "resolution_set_aside",
        exc_info=failure,
        extra={"reservation_id": str(item.resolution.reservation_id)},
    )
    error = ResolutionSetAside(str(item.resolution.reservation_id))
    error.__cause__ = failure
    fail(item.done, error)


def _record_resolved(resolution: Resolution, outcome: ResolutionResult) -> None:
    metrics.hold_resolved(resolution.kind, outcome.name.lower())
    if outcome is ResolutionResult.NOW:
        if resolution.operator_pays is not None or resolution.excess_pico_usd > 0:
            record_operator_cost(resolution)
    else:
        logger.warning(
            "resolution_without_effect",
            extra={
                "reservation_id": str(resolution.reservation_id),
                "outcome": outcome.name.lower(),
            },
        )


def _raise_refusal(admission: _Admission, decision: AdmissionDecision) -> None:
    match decision.code:
        case AdmissionVerdict.WRONG_CLOCK:
            raise ClockIsWrong
        case AdmissionVerdict.TOO_LATE:
            raise DeadlinePassed
        case AdmissionVerdict.NO_ACCOUNT:
            raise AccountMissing
        case AdmissionVerdict.FROZEN:
            raise OrganizationMoving
        case AdmissionVerdict.NO_CREDIT:
            refusal, period = CreditExhausted, None
        case code:
            scope, period = cap_of(code)
            refusal = CAP_ERRORS[scope]
    error = refusal(
        needed=admission.hold.amount_pico_usd,
        available=decision.available_pico_usd,
        held=decision.held_pico_usd,
        period=period,
    )
    error.may_be_stored = admission.may_be_stored
    raise error
