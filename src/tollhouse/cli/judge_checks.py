"""Whether the judge can be asked: its tokenizer, and one question with its probabilities."""

import asyncio
import secrets
from typing import Final

from tollhouse.backends.openai_http import OpenAiBackend
from tollhouse.backends.transport import Transport
from tollhouse.base.clock import SystemClock
from tollhouse.base.ids import OrganizationId, time_ordered_uuid
from tollhouse.catalog.types import Catalog
from tollhouse.cli.findings import Finding, failure, ok, warning
from tollhouse.inference.assembly import backend_config
from tollhouse.inference.courts import judge_config
from tollhouse.judging.court import JudgeConfig
from tollhouse.judging.engine import EngineJudge
from tollhouse.judging.errors import JudgeFailed
from tollhouse.judging.preparing import find_variants
from tollhouse.judging.score import basis_points
from tollhouse.judging.seals import Seals
from tollhouse.judging.types import Content, Evidence, FailureReason, Part, Question
from tollhouse.judging.variants import Variants
from tollhouse.judging.windows import Sheet
from tollhouse.policies.types import Direction

CHECK: Final = "judge"
RULE: Final = "Is the text about bread?"
TEXT: Final = "How is bread baked?"
NO_JUDGE: Final = "none; whatever a policy would have to decide is refused with 503"
REMEDY: Final = (
    "Look at the engine there, and at judge.model, judge.reads and judge.has_tokenizer. Until it "
    "answers, whatever an enforcing policy applies to is refused with 503."
)
FLOOR_REMEDY: Final = (
    "Below judge.coverage_min_basis_points an answer counts as none. Use a model that answers with "
    "yes or no, or lower the setting if you trust this one."
)


async def judge(catalog: Catalog) -> Finding:
    """Ask it one question, as a worker would."""
    config = judge_config(catalog)
    if config is None:
        return ok(CHECK, NO_JUDGE)
    transport = Transport()
    backend = catalog.backends[config.backend]
    port = OpenAiBackend(backend_config(config.backend, backend), transport, SystemClock())
    try:
        async with asyncio.timeout(config.deadline_seconds):
            variants = await find_variants(
                port, config.profile.model, has_tokenizer=config.has_tokenizer
            )
            evidence = await EngineJudge(
                port, config.profile, variants, backend=config.backend
            ).ask(_question())
    except JudgeFailed as refusal:
        return failure(CHECK, _said(refusal.reason), REMEDY)
    except TimeoutError:
        return failure(CHECK, f"does not answer within {config.deadline_seconds:g} s", REMEDY)
    finally:
        await transport.close()
    return _found(config, variants, evidence)


def _question() -> Question:
    content = Content(direction=Direction.REQUEST, parts=(Part("text", TEXT),), opening=1)
    sheet = Sheet(content)
    organization_id = OrganizationId(time_ordered_uuid())
    seal = Seals(secrets.token_bytes(32)).of(organization_id, content, sheet)
    (window,) = sheet.windows(bytes_max=len(sheet.text))
    return Question(rule=RULE, window=window, seal=seal)


def _said(reason: FailureReason) -> str:
    if reason is FailureReason.UNSEEN:
        return "its tokenizer has no spelling in which both yes and no are one token"
    return f"cannot be asked: {reason}"


def _found(config: JudgeConfig, variants: Variants, evidence: Evidence) -> Finding:
    coverage = basis_points(evidence.p_yes + evidence.p_no)
    found = (
        f"spellings that count: {len(variants.all)}; "
        f"of its answer {coverage / 100:.2f} % is yes or no"
    )
    if coverage < config.profile.coverage_floor_basis_points:
        return warning(CHECK, found, FLOOR_REMEDY)
    return ok(CHECK, found)
