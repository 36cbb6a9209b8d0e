"""The ledger's database: the model of `tests/ledger`, behind calls that fail as real ones do."""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec

from tests.ledger.model import ORDER, ModelHold, ModelLedger, State
from tests.simulation import loop as loops
from tests.simulation.plan import Fate, Organization
from tests.simulation.system import Facts, SimulatedSystem, key_id, organization_id
from tollhouse.base.ids import OrganizationId
from tollhouse.ledger.types import (
    AdmissionVerdict,
    CapId,
    CapScope,
    Charge,
    Hold,
    OperatorPays,
    Period,
    Resolution,
    ResolutionKind,
    ResolutionResult,
)
from tollhouse.storage.errors import ConstraintViolated, DatabaseUnavailable, LockTimedOut

USUAL_HOLD = 600_000_000
"""About what a request of a plan reserves, in pico-dollars."""
REAP_SECONDS = 10.0
OVERDUE = timedelta(seconds=60)
DEAD_SECONDS = 30.0
LOCK_SECONDS = 2.0
Row = dict[str, object]


@dataclass
class Minimum:
    """What a worker has counted of a hold that it left unsettled."""

    charge: Charge
    model: str | None
    delivered_tokens: int | None


@dataclass
class Ended:
    """How a hold ended, and by whom."""

    resolution: Resolution
    by: str
    at: float


class LedgerServer:
    """One for all workers."""

    def __init__(self, system: SimulatedSystem) -> None:
        self._world = system
        self._random = system.random("ledger")
        self.ledgers: dict[UUID, ModelLedger] = {}
        self.machines: dict[UUID, loops.Machine] = {}
        self.decide_at: dict[UUID, datetime] = {}
        self.minimums: dict[UUID, Minimum] = {}
        self.ended: dict[UUID, Ended] = {}
        self.sent: dict[UUID, Resolution] = {}
        for number, organization in enumerate(system.plan.organizations):
            self._add(number, organization)

    def _add(self, number: int, organization: Organization) -> None:
        ledger = ModelLedger(organization_id(number), credit=organization.credit * USUAL_HOLD)
        if organization.cap is not None:
            period = Period(organization.cap_period)
            place = CapId(scope=CapScope.KEY, scope_id=key_id(number), period=period)
            ledger.caps[place] = organization.cap * USUAL_HOLD
        self.ledgers[organization_id(number)] = ledger

    # Calls

    def call(
        self,
        work: Callable[[Fate], list[Row]],
        *,
        reservations: list[UUID] | None = None,
        is_mixed: bool = False,
    ) -> "asyncio.Future[list[Row]]":
        """Send a call; whether and when it is applied does not depend on who waits for it."""
        done: asyncio.Future[list[Row]] = self._world.loop.create_future()
        fate = self._fate(is_batch=reservations is not None, is_mixed=is_mixed)
        delay = self._random.choice((0.0005, 0.002, 0.02, 0.4))
        if fate is not Fate.APPLIED:
            self._world.note("database", f"next call: {fate.value}")
        match fate:
            case Fate.APPLIED | Fate.SKIPPED:
                self._later(delay, self._apply, work, fate, done)
            case Fate.LOST:
                self._later(delay, _fail, done, DatabaseUnavailable())
            case Fate.ANSWER_LOST:
                self._later(delay, self._apply, work, fate, None)
                self._later(2 * delay, _fail, done, DatabaseUnavailable())
            case Fate.LATE:
                self._later(delay, _fail, done, DatabaseUnavailable())
                for facts in self._facts(reservations):
                    facts.is_applied_late = True
                late = self._random.choice((0.03, 0.2, 3.0, 12.0))
                self._later(delay + late, self._apply, work, fate, None)
            case Fate.LOCK_TIMEOUT:
                self._later(LOCK_SECONDS, _fail, done, LockTimedOut())
            case Fate.CONSTRAINT:
                # What the database refuses for good its worker can not resolve.
                for facts in self._facts(reservations):
                    facts.is_refused_by_fault = True
                self._later(delay, _fail, done, ConstraintViolated("drawn"))
        return done

    def _later(self, delay: float, callback: Callable[..., None], *arguments: object) -> None:
        context = self._world.outside.context
        self._world.loop.call_later(delay, callback, *arguments, context=context)

    def _fate(self, *, is_batch: bool, is_mixed: bool) -> Fate:
        now = self._world.loop.time()
        outage = self._world.plan.outage
        if outage is not None and outage[0] <= now < outage[0] + outage[1]:
            return Fate.LOST
        drawn = self._random.random()
        for fate, share in self._world.plan.fates:
            if drawn < share:
                is_possible = is_mixed if fate is Fate.SKIPPED else is_batch
                needs = fate in {Fate.SKIPPED, Fate.CONSTRAINT}
                return Fate.APPLIED if needs and not is_possible else fate
            drawn -= share
        return Fate.APPLIED

    def _facts(self, reservations: list[UUID] | None) -> list[Facts]:
        by_id = self._world.by_id
        return [by_id[each] for each in reservations or () if each in by_id]

    def _apply(
        self,
        work: Callable[[Fate], list[Row]],
        fate: Fate,
        done: "asyncio.Future[list[Row]] | None",
    ) -> None:
        try:
            rows = work(fate)
        except ConstraintViolated as failure:
            _fail(done, failure)
            return
        if done is not None:
            self._later(0.0005, _answer, done, rows)

    # What the functions do

    def settle(self, resolution: Resolution, worker: str) -> ResolutionResult:
        """`ledger_settle_one`."""
        self._check_sent(resolution, worker)
        ledger = self.ledgers[resolution.organization_id]
        found = ledger.holds.get(resolution.reservation_id)
        if found is None:
            return ResolutionResult.NO_HOLD
        outcome = self._resolved(ledger, found, resolution)
        if outcome is ResolutionResult.NOW:
            now = self._world.loop.time()
            self.ended[resolution.reservation_id] = Ended(resolution, worker, now)
        self._world.note(worker, f"{_text(resolution)}: {outcome.name}")
        return outcome

    def _resolved(
        self, ledger: ModelLedger, found: ModelHold, resolution: Resolution
    ) -> ResolutionResult:
        posted = resolution.charge.total_pico_usd
        self._world.check(
            posted <= found.amount, "charge within hold", f"{posted} of {found.amount}"
        )
        match resolution.kind:
            case ResolutionKind.POST:
                return ledger.settle(found.hold.reservation_id, posted + resolution.excess_pico_usd)
            case ResolutionKind.VOID:
                return ledger.void(found.hold.reservation_id)
            case ResolutionKind.WRITE_OFF:
                return ledger.write_off(found.hold.reservation_id, posted=posted)

    def _check_sent(self, resolution: Resolution, worker: str) -> None:
        """A worker may send a resolution twice, but not two different ones."""
        if worker == "reaper":
            return
        sent = self.sent.setdefault(resolution.reservation_id, resolution)
        self._world.check(
            sent == resolution,
            "resolved once",
            f"{worker} sent {_text(sent)}, then {_text(resolution)}",
        )

    def admit(self, hold: Hold, machine: loops.Machine, *, is_retry: bool) -> Row:
        """`ledger_admit_one`."""
        ledger = self.ledgers[hold.organization_id]
        known = ledger.holds.get(hold.reservation_id)
        if known is not None and known.state is not State.REFUSED:
            if not is_retry:
                raise ConstraintViolated("ledger_entries_pkey")
            late = known.state is State.RESOLVED
            return _decision(AdmissionVerdict.TOO_LATE if late else AdmissionVerdict.ADMITTED)
        now = self._world.now()
        if abs((hold.admitted_at - now).total_seconds()) > 600:
            return _decision(AdmissionVerdict.WRONG_CLOCK)
        if hold.deadline_at <= now:
            return _decision(AdmissionVerdict.TOO_LATE)
        refusal = ledger.admit(hold, 0)
        self._world.note(
            machine.name,
            f"hold of {self._name(hold.reservation_id)}: "
            + ("admitted" if refusal is None else f"refused by {refusal.scope or 'credit'}"),
        )
        if refusal is not None:
            place = next(
                (
                    index
                    for index, (scope, period) in enumerate(ORDER)
                    if scope is refusal.scope and self._refuses(ledger, hold, scope, period)
                ),
                0,
            )
            code = AdmissionVerdict.NO_CREDIT if refusal.scope is None else 10 + place
            return _decision(code, refusal.available, refusal.held)
        self.machines[hold.reservation_id] = machine
        self._check_spent(ledger)
        return _decision(AdmissionVerdict.ADMITTED)

    def _refuses(self, ledger: ModelLedger, hold: Hold, scope: CapScope, period: Period) -> bool:
        ids = {
            CapScope.ORGANIZATION: hold.organization_id,
            CapScope.PROJECT: hold.project_id,
            CapScope.KEY: hold.api_key_id,
        }
        place = CapId(scope=scope, scope_id=ids[scope], period=period)
        if place not in ledger.caps:
            return False
        return ledger.remaining(place, hold.admitted_day) < hold.amount_pico_usd

    def _check_spent(self, ledger: ModelLedger) -> None:
        self._world.check(
            ledger.settled + ledger.reserved <= ledger.credit,
            "no overspend",
            f"{ledger.settled} settled and {ledger.reserved} held of {ledger.credit}",
        )
        for place, limit in ledger.caps.items():
            for start, used in self._used(ledger, place.period).items():
                self._world.check(
                    used <= limit, "no cap crossed", f"{used} of {limit} in {place.period} {start}"
                )

    def _used(self, ledger: ModelLedger, period: Period) -> Counter[date]:
        """Add up what is held and charged in each window, hold by hold; each has one key."""
        used = Counter[date]()
        for held in ledger.holds.values():
            start = period.window_start(held.hold.admitted_day)
            ended = self.ended.get(held.hold.reservation_id)
            if held.state in {State.OPEN, State.UNSETTLED}:
                used[start] += held.amount
            elif ended is not None:
                used[start] += ended.resolution.charge.total_pico_usd
        return used

    def record_minimum(
        self, organization: UUID, reservation: UUID, charge: str, delivered_tokens: int | None
    ) -> None:
        """`provable.record`: mark the hold as unsettled, and store what is certain."""
        held = self.ledgers[organization].holds[reservation]
        if held.state in {State.OPEN, State.UNSETTLED}:
            self._mark(held)
            decoded = msgspec.json.decode(charge, type=Charge)
            model = msgspec.json.decode(charge)["model"]
            self.minimums[reservation] = Minimum(decoded, model, delivered_tokens)
            self._world.note("database", f"{self._name(reservation)}: minimum stored")

    def is_open(self, reservation: UUID) -> bool:
        """Whether a hold is there that nobody has resolved or left unsettled."""
        return any(
            held is not None and held.state is State.OPEN
            for held in (ledger.holds.get(reservation) for ledger in self.ledgers.values())
        )

    def is_live(self, reservation: UUID) -> bool:
        """Whether a hold covers the request: it is neither refused nor resolved."""
        return any(
            held is not None and held.state in {State.OPEN, State.UNSETTLED}
            for held in (ledger.holds.get(reservation) for ledger in self.ledgers.values())
        )

    def admitted(self) -> list[ModelHold]:
        """All holds that were ever admitted."""
        return [
            held
            for ledger in self.ledgers.values()
            for held in ledger.holds.values()
            if held.state is not State.REFUSED
        ]

    def unresolved(self) -> list[ModelHold]:
        """All holds whose end is still to come."""
        return [held for held in self.admitted() if held.state is not State.RESOLVED]

    # The reaper

    def reap(self) -> None:
        """One round: mark what is overdue or whose worker is silent, decide what is due."""
        now = self._world.now()
        for held in self.unresolved():
            reservation = held.hold.reservation_id
            is_overdue = held.hold.deadline_at + OVERDUE <= now
            if held.state is State.OPEN and (is_overdue or self._is_silent(reservation)):
                self._mark(held)
                self._world.note("reaper", f"{self._name(reservation)}: unsettled")
            if held.state is State.UNSETTLED and self.decide_at[reservation] <= now:
                self._write_off(held)

    def _is_silent(self, reservation: UUID) -> bool:
        machine = self.machines[reservation]
        return self._world.loop.time() - alive_at(machine, self._world.loop.time()) > DEAD_SECONDS

    def _mark(self, held: ModelHold) -> None:
        held.state = State.UNSETTLED
        grace = timedelta(hours=24) if held.hold.bills_without_answer else timedelta(seconds=60)
        self.decide_at.setdefault(held.hold.reservation_id, held.hold.deadline_at + grace)

    def _write_off(self, held: ModelHold) -> None:
        minimum = self.minimums.get(held.hold.reservation_id)
        self.settle(
            Resolution(
                organization_id=held.hold.organization_id,
                reservation_id=held.hold.reservation_id,
                admitted_day=held.hold.admitted_day,
                kind=ResolutionKind.WRITE_OFF,
                charge=Charge() if minimum is None else minimum.charge,
                delivered_tokens=None if minimum is None else minimum.delivered_tokens,
                operator_pays=OperatorPays.WORKER_LOST if minimum is None else None,
                model=None if minimum is None else minimum.model,
            ),
            "reaper",
        )

    def _name(self, reservation: UUID) -> str:
        facts = self._world.by_id.get(reservation)
        return "an unknown request" if facts is None else f"request {facts.number}"


def alive_at(machine: loops.Machine, now: float) -> float:
    """When a machine last told that it lives: all the time while it runs."""
    return now if machine.state is loops.State.RUNNING else machine.last_alive


def hold_of(*row: Any) -> Hold:
    """Read a row of the type `ledger_hold`."""
    organization, reservation, admitted_at, deadline_at, amount, *rest = row
    project, key, model, revision, bills = rest
    return Hold(
        organization_id=OrganizationId(organization),
        reservation_id=reservation,
        project_id=project,
        api_key_id=key,
        model=model,
        price_revision=revision,
        amount_pico_usd=amount,
        admitted_at=admitted_at,
        deadline_at=deadline_at,
        bills_without_answer=bills,
    )


def _decision(code: int, available: int = 0, held: int = 0) -> Row:
    return {"code": int(code), "available_pico": available, "held_pico": held}


def _text(resolution: Resolution) -> str:
    number = resolution.reservation_id.int & 0xFFFF
    charge = resolution.charge
    rule = "" if resolution.operator_rule is None else f", {resolution.operator_rule.value}"
    return (
        f"{resolution.kind.value} of request {number}: {charge.input_tokens}+"
        f"{charge.cached_input_tokens} in, {charge.output_tokens} out,"
        f" {resolution.delivered_tokens} delivered{rule}"
    )


def _fail(done: "asyncio.Future[list[Row]] | None", failure: Exception) -> None:
    if done is not None and not done.done():
        done.set_exception(failure)


def _answer(done: "asyncio.Future[list[Row]]", rows: list[Row]) -> None:
    if not done.done():
        done.set_result(rows)
