"""The judge and its courtroom, made from the catalog."""

from collections.abc import Callable, Mapping

from tollhouse.backends.port import BackendPort
from tollhouse.base.clock import Clock
from tollhouse.base.tasks import Tasks
from tollhouse.catalog.types import Catalog, Judge
from tollhouse.decisions.types import Examination
from tollhouse.inference.allowance import HeldBytes
from tollhouse.inference.courtroom import Courtroom
from tollhouse.inference.watching import Watcher
from tollhouse.judging.court import Court, JudgeConfig
from tollhouse.judging.slots import PendingEvaluations
from tollhouse.judging.types import Order, Profile, Reading


def judge_config(catalog: Catalog) -> JudgeConfig | None:
    """How the judge is asked; nothing without one."""
    judge = catalog.judge
    if judge is None:
        return None
    return JudgeConfig(
        backend=judge.backend,
        profile=Profile(
            model=judge.model,
            context_tokens=judge.context_length,
            question_tokens_max=judge.question_tokens_max,
            order=Order(judge.asks),
            reading=Reading(judge.reads),
            takes_cache_salt="cache_salt" in catalog.backends[judge.backend].takes,
            bytes_per_token=judge.bytes_per_token,
            coverage_floor_basis_points=judge.coverage_min_basis_points,
        ),
        has_tokenizer=judge.has_tokenizer,
        deadline_seconds=judge.deadline_seconds,
        request_tokens_max=judge.request_tokens_max,
        organization_tokens_per_minute=judge.organization_tokens_per_minute,
        request_questions_max=judge.request_questions_max,
        organization_questions_max=judge.organization_questions_max,
        worker_questions_max=judge.worker_questions_max,
        verdicts_max=judge.verdicts_max,
        verdict_seconds=judge.verdict_seconds,
    )


def court_of(
    catalog: Catalog, ports: Mapping[str, BackendPort], clock: Clock, *, secret: bytes
) -> Court | None:
    """The judge as this worker has it."""
    config = judge_config(catalog)
    if config is None:
        return None
    return Court(config, ports[config.backend], clock, secret=secret)


def courtroom_of(
    judge: Judge | None,
    court: Court | None,
    clock: Clock,
    tasks: Tasks,
    *,
    held_bytes: HeldBytes,
    pending_evaluations_max: int,
    note: Callable[[Examination], None],
) -> Courtroom:
    """Without a judge there is a room too: what is not decided in it is counted."""
    pending = PendingEvaluations(pending_evaluations_max)
    return Courtroom(
        court=court,
        watcher=Watcher(
            tasks,
            pending,
            waiting_max=0 if judge is None else judge.watched_max,
            bytes_max=held_bytes.organization_max,
        ),
        pending=pending,
        held_bytes=held_bytes,
        tasks=tasks,
        clock=clock,
        note=note,
    )
