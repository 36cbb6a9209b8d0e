# pyright: reportPrivateUsage=false
"""What must hold when nothing happens any more: of every hold, every request and every worker."""

from collections import Counter
from collections.abc import Iterable

from tests.ledger.model import ModelHold
from tests.simulation import loop as loops
from tests.simulation.catalog import (
    CHEAPER,
    OUTPUT_PRICE,
    PROMPT_PRICE,
    REQUEST_PRICE,
    model_of,
)
from tests.simulation.ledger_server import Ended, LedgerServer
from tests.simulation.plan import Backend
from tests.simulation.redis_server import RedisServer
from tests.simulation.system import Facts, SimulatedSystem
from tests.simulation.worker import Worker
from tollhouse.ledger.types import OperatorPays, Resolution, ResolutionKind

CHARACTERS_PER_TOKEN = 4


def is_quiet(worker: Worker) -> bool:
    """Whether a worker has nothing left to do."""
    is_serving = any(each.task and not each.task.done() for each in worker.serving)
    return not is_serving and not worker.tasks._running and not worker.calls._running


def check(system: SimulatedSystem, ledger: LedgerServer, workers: list[Worker]) -> None:
    """Look at everything once."""
    for held in ledger.admitted():
        _check_hold(system, ledger, held, workers)
    for worker in workers:
        if worker.machine.state is not loops.State.DEAD:
            _check_worker(system, worker)
            _check_records(system, ledger, worker)


def check_redis(system: SimulatedSystem, redis: RedisServer, workers: list[Worker]) -> None:
    """Every slot is given back, unless Redis or the worker was lost: then its lease ends.

    A worker that stands still for a moment takes Redis for lost.
    """
    has_trouble = any(worker.may_lose or worker.has_trouble for worker in workers)
    if redis.has_lost or has_trouble:
        return
    taken = redis.taken()
    system.check(not taken, "nothing is left", f"Redis has slots of {taken}")


def _check_hold(
    system: SimulatedSystem, ledger: LedgerServer, held: ModelHold, workers: list[Worker]
) -> None:
    ended = ledger.ended.get(held.hold.reservation_id)
    facts = system.by_id[held.hold.reservation_id]
    system.check(ended is not None, "holds end", f"the hold of request {facts.number} is open")
    if ended is None:
        return
    worker = next(each for each in workers if each.machine is facts.machine)
    _check_lost(system, facts, ended, worker)
    _check_decided(system, facts, ended, worker)
    _check_billed(system, facts, ended)
    _check_delivered(system, facts, ended, worker)
    _check_charge(system, facts, ended, held)


def _check_lost(system: SimulatedSystem, facts: Facts, ended: Ended, worker: Worker) -> None:
    """A rule by which the operator pays needs its reason."""
    rule = ended.resolution.operator_rule
    is_lost = worker.may_lose or facts.is_refused_by_fault
    if rule is OperatorPays.WORKER_LOST and not is_lost and facts.backend_calls:
        system.violate("worker lost", f"request {facts.number}: its worker lives")
    if rule is OperatorPays.GATEWAY_STOPPED:
        is_broken_off = worker.may_break_off
        system.check(is_broken_off, "gateway stopped", f"request {facts.number}: it did not")
    if rule in {
        OperatorPays.BACKEND_FAILED,
        OperatorPays.POLICY_EVALUATOR_FAILED,
        OperatorPays.GATEWAY_STOPPED,
    }:
        system.check(
            not facts.read, "undelivered", f"request {facts.number}: {rule}, and it was delivered"
        )


def _check_decided(system: SimulatedSystem, facts: Facts, ended: Ended, worker: Worker) -> None:
    """A worker that lives decides its holds, unless only the backend knows what it bills."""
    is_known = facts.got_end and facts.told_output is not None
    may_be_billed = facts.answer.backend is Backend.BILLS and facts.backend_calls > 0
    is_stray = facts.is_applied_late and not facts.backend_calls
    if worker.may_lose or facts.is_refused_by_fault or is_stray or (may_be_billed and not is_known):
        return
    system.check(
        ended.by != "reaper", "workers decide", f"request {facts.number}: its worker left it open"
    )


def _check_billed(system: SimulatedSystem, facts: Facts, ended: Ended) -> None:
    """What may be billed without an answer is charged at once only with a complete report."""
    if facts.answer.backend is not Backend.BILLS:
        return
    system.check(
        ended.resolution.kind is not ResolutionKind.POST or (facts.got_end and facts.got_usage),
        "billed stays unsettled",
        f"request {facts.number} is charged without a report",
    )


def _check_delivered(system: SimulatedSystem, facts: Facts, ended: Ended, worker: Worker) -> None:
    """Delivered implies charged, unless the operator pays by a rule."""
    resolution, request = ended.resolution, facts.request
    if not facts.sent:
        # A record for which there is no room counts as sent when its caller is cut off. What stands
        # before the words of a record is delivered also where its words are not. A buffered answer
        # counts as sent with its first byte.
        is_released = facts.has_sent_byte and bool(system.enforced(facts, "response"))
        has_filler = any(each.filler for each in facts.answer.records)
        may_be_told = facts.is_cut_off or has_filler or is_released
        system.check(
            not resolution.delivered_tokens or may_be_told,
            "nothing delivered",
            f"request {facts.number}: {resolution.delivered_tokens} tokens told, none sent",
        )
        # One that stood still past the deadline of a hold ends its answer by the deadline's rule.
        is_broken_off = worker.may_break_off and request.reading.leaves
        if not (is_broken_off or worker.stood_still):
            _check_withheld(system, facts, resolution)
    if not facts.read or resolution.operator_rule in {
        OperatorPays.WORKER_LOST,
        OperatorPays.GATEWAY_STOPPED,
    }:
        return
    least = 1 if facts.told_output is not None else delivered_tokens(facts)
    charged = resolution.charge.output_tokens
    system.check(
        charged >= min(least, request.output_tokens * request.choices),
        "delivered implies charged",
        f"request {facts.number}: {least} tokens delivered, {charged} charged"
        f" ({resolution.kind.value}, {resolution.operator_rule})",
    )
    told = resolution.delivered_tokens or 0
    system.check(
        told >= min(delivered_tokens(facts), charged),
        "delivered is told",
        f"request {facts.number}: {delivered_tokens(facts)} tokens delivered, {told} told",
    )


def _check_withheld(system: SimulatedSystem, facts: Facts, resolution: Resolution) -> None:
    """What was withheld to its end is charged only if it was refused, or its reader had left."""
    policies = system.enforced(facts, "response")
    # What is too long to be judged is charged.
    is_long = any(record.filler for record in facts.answer.records)
    if not policies or not facts.generated or not facts.got_end or is_long:
        return
    if facts.request.is_stream and (
        facts.answer.backend is Backend.STOPS or _is_judged(system, facts)
    ):
        return
    refused = tuple(f"bad{policy.number}" for policy in policies)
    is_refused = any(word.endswith(refused) for word in facts.generated)
    system.check(
        is_refused or resolution.charge.total_pico_usd == 0,
        "withheld is not charged",
        f"request {facts.number} is charged for an answer that nobody refused",
    )


def _is_judged(system: SimulatedSystem, facts: Facts) -> bool:
    """Whether every enforcing policy found no match in all of the answer."""
    judged = [system.judged_by(facts, policy) for policy in system.enforced(facts, "response")]
    return all(word in words for words in judged for word in facts.generated)


def delivered_tokens(facts: Facts) -> int:
    """The tokens that the caller has."""
    return _tokens(facts, facts.read)


def _tokens(facts: Facts, words: Iterable[str]) -> int:
    """A quarter of the characters of each choice."""
    characters: Counter[int] = Counter()
    for word in words:
        characters[facts.generated[word]] += len(word) + 1
    bound = facts.request.output_tokens
    return sum(min(-(-count // CHARACTERS_PER_TOKEN), bound) for count in characters.values())


def _check_charge(system: SimulatedSystem, facts: Facts, ended: Ended, held: ModelHold) -> None:
    """Nobody pays for nothing, and a complete answer costs what its backend reported."""
    resolution, name = ended.resolution, f"request {facts.number}"
    charge = resolution.charge
    if not facts.got_record:
        system.check(charge.total_pico_usd == 0, "nothing for nothing", f"{name} is charged")
    cost = REQUEST_PRICE + PROMPT_PRICE * charge.input_tokens + OUTPUT_PRICE * charge.output_tokens
    if not facts.is_fallback:
        cost //= CHEAPER
    if resolution.kind is ResolutionKind.POST:
        system.check(charge.total_pico_usd == cost, "cost", f"{name}: {charge}")
        system.check(facts.got_record, "nothing for nothing", f"{name} is posted without an answer")
    if charge.total_pico_usd:
        before = None if facts.is_fallback or facts.request.sick is None else facts.answer.backend
        model = model_of(facts.request.answer.backend, before)
        charged = resolution.model or held.hold.model
        system.check(charged == model, "model", f"{name} is charged as {charged}, not {model}")
    told = facts.told_output
    if resolution.kind is ResolutionKind.POST and told is not None:
        texts = len(set(facts.generated.values()))
        bound = facts.request.output_tokens * facts.request.choices
        expected = min(told, bound) if told >= texts else None
        # A report before an answer's end may not be the last one, so what was counted is the least.
        counted = 0 if facts.got_end else _tokens(facts, facts.generated)
        system.check(
            expected is None or expected <= charge.output_tokens <= max(expected, counted),
            "charged as reported",
            f"{name}: {told} reported, {charge.output_tokens} charged",
        )
        above = max(0, told - bound) * OUTPUT_PRICE // (1 if facts.is_fallback else CHEAPER)
        system.check(
            expected is None or resolution.excess_pico_usd == above,
            "excess",
            f"{name}: {told} reported, an excess of {resolution.excess_pico_usd} told",
        )


def _check_worker(system: SimulatedSystem, worker: Worker) -> None:
    """Queues are empty, no task is left, and nothing counts as in use."""
    left = {
        "permits": [
            each.number
            for each in system.facts.values()
            if each.is_inside and each.machine is worker.machine
        ],
        "requests": [each for each in worker.serving if each.task and not each.task.done()],
        "tasks": worker.tasks._running,
        "calls": worker.calls._running,
        "lanes": worker.batcher._queues,
        "mixed items": worker.batcher._mixed,
        "mixed batches": worker.batcher._mixed_batches,
        "bytes": worker.buffers.used_bytes,
        "unread pieces": worker.buffers._unread,
        "evaluations": worker.evaluator_dependencies.pending._by_organization,
        "watched": worker.evaluator_dependencies.monitoring_queue._waiting.used,
        "watched bytes": worker.evaluator_dependencies.monitoring_queue._bytes.used,
        "slots": worker.limiter._counter._local.held,
    }
    # A process that ends while its database is away leaves what it could not write to the reaper.
    queued = {"lanes", "mixed items"} if worker.is_stopping else set[str]()
    for name, found in left.items():
        if name in queued:
            continue
        system.check(not found, "nothing is left", f"{worker.machine.name} has {name}: {found}")


def _check_records(system: SimulatedSystem, ledger: LedgerServer, worker: Worker) -> None:
    """Every request has one record, whose cost is the ledger's where its worker decided it."""
    for serving in worker.serving:
        facts = serving.facts
        if serving.task is None or serving.task.cancelled():
            continue
        records = worker.records.get(facts.request_id, [])
        name = f"request {facts.number}"
        system.check(len(records) == 1, "one record", f"{name} has {len(records)}")
        ended = ledger.ended.get(facts.request_id)
        if ended is None or ended.by == "reaper" or not records:
            continue
        cost, told = ended.resolution.charge.total_pico_usd, records[0].cost_pico_usd
        system.check(told == cost, "record equals ledger", f"{name}: {told}, the ledger has {cost}")
