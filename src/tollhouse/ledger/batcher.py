"""The elevator: whoever comes while a batch is under way rides with the next one.

One batch per organization is under way in a process, so a busy organization makes large
batches by itself and an idle one waits for nobody. Organizations with a single waiting item
share mixed batches, which skip an account that somebody else has locked; a skipped item goes
into a batch of its organization's own, which waits for the lock.

Every item is owned by the process: a caller who leaves loses only the answer.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from tollhouse.base.ids import InstanceId, OrganizationId
from tollhouse.base.tasks import Tasks, is_done
from tollhouse.ledger import batches, provable
from tollhouse.ledger.batches import BatchResult, Decision
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
from tollhouse.ledger.operations import note_excess
from tollhouse.ledger.rules import CAPS
from tollhouse.ledger.types import Hold, Resolution, ResolutionKind, Resolved, Verdict
from tollhouse.observability import metrics
from tollhouse.storage.database import Database
from tollhouse.storage.errors import (
    ConstraintViolated,
    DatabaseUnavailable,
    LockTimedOut,
    StatementFailed,
)

logger = logging.getLogger("tollhouse.ledger")

BATCH_ITEMS_MAX = 128
MIXED_BATCHES_MAX = 2
FIRST_PAUSE = timedelta(milliseconds=50)
LONGEST_PAUSE = timedelta(seconds=1)
ANSWER_WAITS_AT_MOST = timedelta(seconds=2)
FIRST_CAP_CODE = 10

_UNKNOWN_RESULT = (DatabaseUnavailable, LockTimedOut)
_REFUSED_BY_THE_DATABASE = (ConstraintViolated, StatementFailed)


@dataclass(eq=False, slots=True)
class _Admission:
    hold: Hold
    done: "asyncio.Future[Decision]"
    is_abandoned: bool = False
    may_be_stored: bool = False

    @property
    def organization_id(self) -> OrganizationId:
        return self.hold.organization_id


@dataclass(eq=False, slots=True)
class _Settlement:
    resolution: Resolution
    done: "asyncio.Future[Resolved]"
    may_be_stored: bool = False

    @property
    def organization_id(self) -> OrganizationId:
        return self.resolution.organization_id


_Item = _Admission | _Settlement


@dataclass(eq=False, slots=True)
class _Lane:
    """What waits for one organization; it is busy while a batch with its items is under way."""

    waiting: deque[_Item] = field(default_factory=deque["_Item"])
    is_busy: bool = False
    must_wait_for_lock: bool = False


class Batcher:
    """One per worker."""

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
        self._lanes: dict[OrganizationId, _Lane] = {}
        self._mixed: deque[_Item] = deque()
        self._mixed_batches = 0

    async def admit(self, hold: Hold, *, patience: timedelta) -> None:
        """Return once the hold is committed, or say why it is not.

        A caller who gives up, or is cancelled, leaves nothing behind: the process goes on
        until the result is known, and then gives the hold back.
        """
        admission = _Admission(hold, asyncio.get_running_loop().create_future())
        self._enqueue(admission)
        try:
            is_known = await is_done(admission.done, within_seconds=patience.total_seconds())
        except asyncio.CancelledError:
            self._abandon(admission)
            raise
        if not is_known:
            self._abandon(admission)
            raise AdmissionUndecided
        _raise_refusal(hold, admission.done.result())

    def resolve(self, resolution: Resolution) -> "asyncio.Future[Resolved]":
        """End a hold. It will be done whether or not anybody awaits the answer."""
        done: asyncio.Future[Resolved] = asyncio.get_running_loop().create_future()
        self._enqueue(_Settlement(resolution, done))
        # A caller who is cancelled cancels what it awaits, which must not be the process's own.
        answer = asyncio.shield(done)
        # Read once, so that an answer nobody waits for does not make the loop complain.
        answer.add_done_callback(lambda future: future.cancelled() or future.exception())
        return answer

    def leave_unsettled(self, minimum: Resolution) -> None:
        """Keep a hold until its usage is known, and store what is certain about it by now."""
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
        """End a hold before an error leaves, since SDKs retry at once; but wait 2 s at most."""
        answer = self.resolve(resolution)
        await is_done(answer, within_seconds=ANSWER_WAITS_AT_MOST.total_seconds())

    def _abandon(self, admission: _Admission) -> None:
        admission.is_abandoned = True
        if admission.done.done() and not admission.done.exception():
            self._give_back(admission)

    def _give_back(self, admission: _Admission) -> None:
        if admission.done.result().code == Verdict.ADMITTED:
            hold = admission.hold
            self.resolve(
                Resolution(
                    organization_id=hold.organization_id,
                    reservation_id=hold.reservation_id,
                    admitted_day=hold.admitted_day,
                    kind=ResolutionKind.VOID,
                )
            )

    def _enqueue(self, item: _Item) -> None:
        lane = self._lanes.setdefault(item.organization_id, _Lane())
        lane.waiting.append(item)
        if not lane.is_busy:
            self._dispatch(item.organization_id, lane)

    def _dispatch(self, organization_id: OrganizationId, lane: _Lane) -> None:
        """Nothing of this organization is under way: send what waits, or forget the lane."""
        if not lane.waiting:
            del self._lanes[organization_id]
            return
        lane.is_busy = True
        if len(lane.waiting) == 1 and not lane.must_wait_for_lock:
            self._mixed.append(lane.waiting.popleft())
            if self._mixed_batches < MIXED_BATCHES_MAX:
                self._mixed_batches += 1
                self._tasks.start("ledger-mixed", self._run_mixed())
        else:
            lane.must_wait_for_lock = False
            self._tasks.start("ledger-batch", self._run_own(organization_id, lane))

    async def _run_own(self, organization_id: OrganizationId, lane: _Lane) -> None:
        items: list[_Item] = []
        try:
            items = _take(lane.waiting)
            await self._carry_out(items, self._own_sender(organization_id))
        finally:
            _fail_undone(items)
            self._release(organization_id)

    async def _run_mixed(self) -> None:
        """While one batch is under way the next one gathers; ends when nobody waits."""
        try:
            while self._mixed:
                await self._carry_out_mixed(_take(self._mixed))
        finally:
            self._mixed_batches -= 1

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
        """An item without an answer was skipped; a batch of its own will wait for the lock."""
        if not item.done.done():
            lane = self._lanes[item.organization_id]
            lane.waiting.appendleft(item)
            lane.must_wait_for_lock = True
        self._release(item.organization_id)

    def _release(self, organization_id: OrganizationId) -> None:
        lane = self._lanes[organization_id]
        lane.is_busy = False
        self._dispatch(organization_id, lane)

    def _own_sender(self, organization_id: OrganizationId) -> "_Sender":
        async def send(items: Sequence[_Item], *, is_retry: bool) -> BatchResult:
            # For one try only: an account that somebody keeps locked must not keep the place.
            async with self._own_batches:
                return await batches.apply(
                    self._database,
                    organization_id,
                    [item.resolution for item in items if isinstance(item, _Settlement)],
                    [item.hold for item in items if isinstance(item, _Admission)],
                    instance_id=self._instance_id,
                    is_retry=is_retry,
                )

        return send

    async def _send_mixed(self, items: Sequence[_Item], *, is_retry: bool) -> BatchResult:
        return await batches.apply_mixed(
            self._database,
            [item.resolution for item in items if isinstance(item, _Settlement)],
            [item.hold for item in items if isinstance(item, _Admission)],
            instance_id=self._instance_id,
            is_retry=is_retry,
        )

    async def _carry_out(self, items: Sequence[_Item], send: "_Sender") -> None:
        """Until the database has answered; what it refuses as a whole is tried one by one."""
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
        """A result that is not known is asked for again, with the same IDs and instants.

        An item that was skipped, or is tried alone, takes along that it may be stored already.
        """
        pause = FIRST_PAUSE
        while True:
            is_retry = any(item.may_be_stored for item in items)
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
                    _note_resolved(item.resolution, outcome)
            else:
                decision = next(decisions)
                if decision is not None:
                    item.done.set_result(decision)
                    metrics.admission_decided(decision.code)
                    if item.is_abandoned:
                        self._give_back(item)


_Sender = Callable[..., Awaitable[BatchResult]]


def _take(waiting: deque[_Item]) -> list[_Item]:
    return [waiting.popleft() for _ in range(min(len(waiting), BATCH_ITEMS_MAX))]


def _fail_undone(items: Sequence[_Item]) -> None:
    """The batch ended without an answer, which only a stopping process or a bug can cause."""
    for item in items:
        if not item.done.done():
            item.done.set_exception(AdmissionUndecided())
            item.done.exception()


def _set_aside(item: _Item, failure: Exception) -> None:
    """An admission fails its caller; a resolution is left to the reaper, with its hold."""
    if isinstance(item, _Admission):
        logger.error("admission_impossible", exc_info=failure)
        item.done.set_exception(AdmissionImpossible())
        item.done.exception()
        return
    metrics.resolution_set_aside()
    logger.error(
        "resolution_set_aside",
        exc_info=failure,
        extra={"reservation_id": str(item.resolution.reservation_id)},
    )
    error = ResolutionSetAside(str(item.resolution.reservation_id))
    error.__cause__ = failure
    item.done.set_exception(error)


def _note_resolved(resolution: Resolution, outcome: Resolved) -> None:
    metrics.hold_resolved(resolution.kind, outcome.name.lower())
    if outcome is Resolved.NOW:
        note_excess(resolution)
    else:
        logger.warning(
            "resolution_without_effect",
            extra={
                "reservation_id": str(resolution.reservation_id),
                "outcome": outcome.name.lower(),
            },
        )


def _raise_refusal(hold: Hold, decision: Decision) -> None:
    match decision.code:
        case Verdict.ADMITTED:
            return
        case Verdict.WRONG_CLOCK:
            raise ClockIsWrong
        case Verdict.TOO_LATE:
            raise DeadlinePassed
        case Verdict.NO_ACCOUNT:
            raise AccountMissing
        case Verdict.NO_CREDIT:
            refusal = CreditExhausted
        case code:
            scope, _ = CAPS[code - FIRST_CAP_CODE]
            refusal = CAP_ERRORS[scope]
    raise refusal(
        needed=hold.amount_pico_usd,
        available=decision.available_pico_usd,
        held=decision.held_pico_usd,
    )
