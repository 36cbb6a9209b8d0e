"""Check of the judge: its tokenizer, and one question with its probabilities."""

import asyncio
import secrets
from typing import Final

from tollhouse.base.clock import SystemClock
from tollhouse.base.findings import Finding, failure, ok, warning
from tollhouse.base.ids import OrganizationId, time_ordered_uuid
from tollhouse.base.policies import DEMONSTRATION_JUDGE, DEMONSTRATION_KINDS, Direction
from tollhouse.catalog.types import Catalog
from tollhouse.evaluation.content.windows import RenderedContent
from tollhouse.evaluation.dependencies import judge_config
from tollhouse.evaluation.errors import JudgeFailed
from tollhouse.evaluation.evaluator import JudgeConfig
from tollhouse.evaluation.judge.client import JudgeClient
from tollhouse.evaluation.judge.request_keys import JudgeRequestKeyDeriver
from tollhouse.evaluation.judge.score import basis_points
from tollhouse.evaluation.judge.yes_no_tokens import YesNoTokens, engine_yes_no_tokens
from tollhouse.evaluation.types import (
    AnswerProbabilities,
    Content,
    ContentPart,
    FailureReason,
    JudgeQuestion,
)
from tollhouse.inference.assembly import backend_port
from tollhouse.trial.demonstration_judge import CARD_NUMBERS

CHECK: Final = "judge"
RULE: Final = "Is the text about bread?"
TEXT: Final = "How is bread baked?"
NO_JUDGE: Final = "none configured; requests that a policy applies to are refused with 503"
DEMONSTRATION: Final = f"the demonstration judge of a trial: it knows only {DEMONSTRATION_KINDS}"
REMEDY: Final = (
    "Check the judge's engine, and judge.model, judge.reads and judge.has_tokenizer. Until it "
    "answers, requests that an enforcing policy applies to are refused with 503."
)
FLOOR_REMEDY: Final = (
    "An answer below judge.coverage_min_basis_points is not used. Use a model that answers with "
    "yes or no, or lower the setting if you trust this model."
)


async def judge(catalog: Catalog) -> Finding:
    """Ask the judge one question, as a worker would."""
    config = judge_config(catalog)
    if config is None:
        return ok(CHECK, NO_JUDGE)
    is_demonstration = config.profile.model == DEMONSTRATION_JUDGE
    port = backend_port(config.backend, catalog.backends[config.backend], SystemClock())
    try:
        async with asyncio.timeout(config.deadline_seconds):
            yes_no_tokens = await engine_yes_no_tokens(
                port, config.profile.model, has_tokenizer=config.has_tokenizer
            )
            evidence = await JudgeClient(
                port, config.profile, yes_no_tokens, backend=config.backend
            ).ask(_question(CARD_NUMBERS if is_demonstration else RULE))
    except JudgeFailed as refusal:
        return failure(CHECK, _failure_text(refusal.reason), REMEDY)
    except TimeoutError:
        return failure(CHECK, f"does not answer within {config.deadline_seconds:g} s", REMEDY)
    finally:
        await port.close()
    return ok(CHECK, DEMONSTRATION) if is_demonstration else _found(config, yes_no_tokens, evidence)


def _question(rule: str) -> JudgeQuestion:
    content = Content(direction=Direction.REQUEST, parts=(ContentPart("text", TEXT),), opening=1)
    rendered = RenderedContent(content)
    organization_id = OrganizationId(time_ordered_uuid())
    request_keys = JudgeRequestKeyDeriver(secrets.token_bytes(32)).derive(
        organization_id, content, rendered
    )
    (window,) = rendered.windows(bytes_max=len(rendered.text))
    return JudgeQuestion(rule=rule, window=window, request_keys=request_keys)


def _failure_text(reason: FailureReason) -> str:
    if reason is FailureReason.UNSEEN:
        return "its tokenizer has no spelling in which both yes and no are one token"
    return f"cannot be asked: {reason}"


def _found(
    config: JudgeConfig, yes_no_tokens: YesNoTokens, evidence: AnswerProbabilities
) -> Finding:
    coverage = basis_points(evidence.p_yes + evidence.p_no)
    found = (
        f"{len(yes_no_tokens.all)} spellings of yes and no are used; they are "
        f"{coverage / 100:.2f} % of its answer"
    )
    if coverage < config.profile.coverage_floor_basis_points:
        return warning(CHECK, found, FLOOR_REMEDY)
    return ok(CHECK, found)
