"""Policies, contents and questions to judge."""

from uuid import uuid4

from tollhouse.base.ids import OrganizationId, PolicyId
from tollhouse.base.policies import Direction, JudgedDirection, Mode
from tollhouse.evaluation.content.windows import RenderedContent
from tollhouse.evaluation.judge.question_runner import JudgedContent
from tollhouse.evaluation.judge.request_keys import JudgeRequestKeyDeriver
from tollhouse.evaluation.types import Content, ContentPart, JudgeProfile, JudgeQuestion, Score
from tollhouse.policies.types import AppliedPolicy

KEY_DERIVER = JudgeRequestKeyDeriver(b"a secret of the tests" * 2)
ORGANIZATION = OrganizationId(uuid4())
PROFILE = JudgeProfile(model="judge", context_tokens=32_000, question_tokens_max=8_000)


def asks_for(
    word: str,
    *,
    mode: Mode = Mode.ENFORCING,
    direction: Direction = Direction.BOTH,
    threshold_basis_points: int = 5_000,
    version: int = 1,
) -> AppliedPolicy:
    """A policy that the scripted judge understands."""
    return policy(
        f'Does it say "{word}"?',
        mode=mode,
        direction=direction,
        threshold_basis_points=threshold_basis_points,
        version=version,
    )


def policy(
    rule: str,
    *,
    mode: Mode = Mode.ENFORCING,
    direction: Direction = Direction.BOTH,
    threshold_basis_points: int = 5_000,
    version: int = 1,
) -> AppliedPolicy:
    return AppliedPolicy(
        id=PolicyId(uuid4()),
        version=version,
        rule=rule,
        direction=direction,
        mode=mode,
        match_threshold_basis_points=threshold_basis_points,
    )


def saying(*texts: str, direction: JudgedDirection = Direction.REQUEST) -> Content:
    parts = tuple(ContentPart(f"messages[{index}] user", text) for index, text in enumerate(texts))
    return Content(direction=direction, parts=parts, opening=1)


def subject_of(content: Content, organization_id: OrganizationId = ORGANIZATION) -> JudgedContent:
    rendered = RenderedContent(content)
    return JudgedContent(
        organization_id=organization_id,
        rendered=rendered,
        request_keys=KEY_DERIVER.derive(organization_id, content, rendered),
    )


def question_of(rule: str, content: Content) -> JudgeQuestion:
    judged = subject_of(content)
    (window,) = judged.rendered.windows(bytes_max=10**9)
    return JudgeQuestion(rule=rule, window=window, request_keys=judged.request_keys)


def scored(basis_points: int, *, lowest: int | None = None, highest: int | None = None) -> Score:
    """A score, sure unless it is given bounds."""
    return Score(
        basis_points=basis_points,
        lowest_basis_points=basis_points if lowest is None else lowest,
        highest_basis_points=basis_points if highest is None else highest,
        coverage_basis_points=10_000,
    )
