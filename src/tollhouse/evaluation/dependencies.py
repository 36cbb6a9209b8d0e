"""What one evaluation needs: the applied policies, the request and the worker's shared parts."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from tollhouse.backends.port import BackendPort
from tollhouse.base.clock import Clock
from tollhouse.base.dialects import chat_path
from tollhouse.base.errors import GatewayError
from tollhouse.base.ids import RequestId
from tollhouse.base.policies import JUDGED_DIRECTIONS, EvaluationOutcome, JudgedDirection, Mode
from tollhouse.base.tasks import Tasks
from tollhouse.catalog.types import Catalog, CatalogJudge
from tollhouse.contract.chat import ChatRequest
from tollhouse.decisions.types import EvaluationRecord
from tollhouse.evaluation.buffer_quota import AnswerBuffers
from tollhouse.evaluation.errors import PolicySetTooLarge, RuleTooLong
from tollhouse.evaluation.evaluator import JudgeConfig, PolicyEvaluator
from tollhouse.evaluation.judge.quotas import PendingEvaluations
from tollhouse.evaluation.monitoring_queue import MonitoringQueue
from tollhouse.evaluation.token_budget import TokenBudget, applying
from tollhouse.evaluation.types import (
    EvaluationDecision,
    JudgeProfile,
    LogprobSource,
    PromptOrder,
)
from tollhouse.keys.types import Customer
from tollhouse.policies.sets import PublicationCheck, no_check
from tollhouse.policies.types import AppliedPolicy


@dataclass(frozen=True, kw_only=True, slots=True)
class AppliedPolicies:
    """The policies of a request: those of its project, and those it adds by `policy_ids`.

    `selected` has only policies that are not in `by_scope`, so it can be empty although the
    request has a selection. `paused` are policies that it selects too; they are only recorded.
    """

    by_scope: tuple[AppliedPolicy, ...]
    selected: tuple[AppliedPolicy, ...] = ()
    has_selection: bool = False
    paused: tuple[AppliedPolicy, ...] = ()

    @property
    def all(self) -> tuple[AppliedPolicy, ...]:
        """Each policy once."""
        return self.by_scope + self.selected

    def matching(self, direction: JudgedDirection, mode: Mode) -> tuple[AppliedPolicy, ...]:
        """Return the policies of a mode that are evaluated in a direction."""
        return tuple(each for each in applying(self.all, direction) if each.mode is mode)

    def unmatched(self) -> Iterator[tuple[JudgedDirection, Mode]]:
        """Yield the directions and modes in which no policy is evaluated."""
        for direction, mode in product(JUDGED_DIRECTIONS, Mode):
            if not self.matching(direction, mode):
                yield direction, mode

    def skipped(self, direction: JudgedDirection, mode: Mode) -> Iterator[EvaluationDecision]:
        """Yield the decisions of the paused policies of a mode in a direction."""
        for policy in applying(self.paused, direction):
            if policy.mode is mode:
                yield EvaluationDecision(policy=policy, outcome=EvaluationOutcome.SKIPPED)


@dataclass(frozen=True, kw_only=True, slots=True)
class EvaluatorDependencies:
    """The parts of a worker that evaluations share. `evaluator` is None without a judge."""

    evaluator: PolicyEvaluator | None
    monitoring_queue: MonitoringQueue
    pending: PendingEvaluations
    buffers: AnswerBuffers
    tasks: Tasks
    clock: Clock
    record: Callable[[EvaluationRecord], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class EvaluationInput:
    """The request that is evaluated. `name_of` maps a field to the name that its caller used."""

    request_id: RequestId
    customer: Customer
    request: ChatRequest
    name_of: Callable[[str], str]
    size_bytes: int


def judge_config(catalog: Catalog) -> JudgeConfig | None:
    """Return the configuration of the catalog's judge, or None without one."""
    judge = catalog.judge
    if judge is None:
        return None
    backend = catalog.backends[judge.backend]
    return JudgeConfig(
        backend=judge.backend,
        profile=JudgeProfile(
            model=judge.model,
            context_tokens=judge.context_length,
            question_tokens_max=judge.question_tokens_max,
            order=PromptOrder(judge.asks),
            reading=LogprobSource(judge.reads),
            takes_cache_salt="cache_salt" in backend.takes,
            path=chat_path(backend.dialect, judge.model, api_version=backend.api_version),
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


def evaluator_for(
    catalog: Catalog, ports: Mapping[str, BackendPort], clock: Clock, *, secret: bytes
) -> PolicyEvaluator | None:
    """Return the policy evaluator of this worker, or None if the catalog has no judge."""
    config = judge_config(catalog)
    if config is None:
        return None
    return PolicyEvaluator(config, ports[config.backend], clock, secret=secret)


def evaluator_dependencies(
    judge: CatalogJudge | None,
    evaluator: PolicyEvaluator | None,
    clock: Clock,
    tasks: Tasks,
    *,
    buffers: AnswerBuffers,
    pending_evaluations_max: int,
    record: Callable[[EvaluationRecord], None],
) -> EvaluatorDependencies:
    """Return the shared parts of a worker. Without a judge, evaluations are counted as dropped."""
    pending = PendingEvaluations(pending_evaluations_max)
    return EvaluatorDependencies(
        evaluator=evaluator,
        monitoring_queue=MonitoringQueue(
            tasks,
            pending,
            waiting_max=0 if judge is None else judge.monitoring_queue_size,
            bytes_max=buffers.organization_max,
        ),
        pending=pending,
        buffers=buffers,
        tasks=tasks,
        clock=clock,
        record=record,
    )


def publication_check(config: JudgeConfig | None) -> PublicationCheck:
    """Return the check that policies fit the judge's budget before they are published.

    Without a judge every policy passes: requests to which it applies are refused instead.
    """
    if config is None:
        return no_check
    budget = TokenBudget(config.profile, request_tokens_max=config.request_tokens_max)

    def check(policies: Sequence[AppliedPolicy]) -> GatewayError | None:
        try:
            for policy in policies:
                budget.check_rule(policy.rule)
            budget.check_set(policies)
        except (RuleTooLong, PolicySetTooLarge) as refusal:
            return refusal
        return None

    return check
