"""Policies, contents and questions to judge."""

from uuid import uuid4

from tollhouse.base.ids import OrganizationId, PolicyId
from tollhouse.judging.asking import Subject
from tollhouse.judging.seals import Seals
from tollhouse.judging.types import Content, JudgedDirection, Part, Profile, Question, Score
from tollhouse.judging.windows import Sheet
from tollhouse.policies.types import AppliedPolicy, Direction, Mode

SEALS = Seals(b"a secret of the tests" * 2)
ORGANIZATION = OrganizationId(uuid4())
PROFILE = Profile(model="judge", context_tokens=32_000, question_tokens_max=8_000)


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
    parts = tuple(Part(f"messages[{index}] user", text) for index, text in enumerate(texts))
    return Content(direction=direction, parts=parts, opening=1)


def subject_of(content: Content, organization_id: OrganizationId = ORGANIZATION) -> Subject:
    sheet = Sheet(content)
    return Subject(
        organization_id=organization_id,
        sheet=sheet,
        seal=SEALS.of(organization_id, content, sheet),
    )


def question_of(rule: str, content: Content) -> Question:
    subject = subject_of(content)
    (window,) = subject.sheet.windows(bytes_max=10**9)
    return Question(rule=rule, window=window, seal=subject.seal)


def scored(basis_points: int, *, lowest: int | None = None, highest: int | None = None) -> Score:
    """A score, sure unless it is given bounds."""
    return Score(
        basis_points=basis_points,
        lowest_basis_points=basis_points if lowest is None else lowest,
        highest_basis_points=basis_points if highest is None else highest,
        coverage_basis_points=10_000,
    )
