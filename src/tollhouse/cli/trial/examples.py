"""The example organization of a trial, with made-up usage that is labelled as such."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final

from rich.progress import Progress

from tollhouse.base.ids import OrganizationId, PolicyId, time_ordered_uuid
from tollhouse.base.money import PICO_USD_PER_USD, PicoUsd
from tollhouse.base.policies import Direction, Mode
from tollhouse.cli.seeds import (
    create_admin_key,
    create_organization,
    create_project,
    create_project_key,
    grant_credit,
)
from tollhouse.cli.session import Session
from tollhouse.contract.bounds import ALERT_PERCENT_DEFAULT
from tollhouse.keys.types import ProjectKey
from tollhouse.ledger import backfill
from tollhouse.ledger import service as ledger
from tollhouse.ledger.types import CapId, CapScope, CapUse, Charge, GrantKind, PastUsage, Period
from tollhouse.policies import service as policies
from tollhouse.policies.types import PolicyContent, PolicyScope, Publish
from tollhouse.projects import service as projects
from tollhouse.trial import demonstration_judge

ORGANIZATION: Final = "Example organization"
PROJECTS: Final = ("Website", "Experiments")
KEY_NAME: Final = "made by tollhouse up"
SENDER_KEY_NAME: Final = "Example requests, sent by tollhouse up"
EXAMPLE_KEY_NAME: Final = "Example usage, made up"
EXAMPLE_MODELS: Final = ("example/large", "example/small")
REASON: Final = "example usage, made up by tollhouse up"
DAYS: Final = 30
CREDIT: Final = PicoUsd(25 * PICO_USD_PER_USD)
CAP: Final = PicoUsd(100 * PICO_USD_PER_USD)
CENT: Final = PICO_USD_PER_USD // 100
NEAR_CAP_PERCENT: Final = 92
DESCRIPTION: Final = "An example."
WITHHOLDING: Final = "E-mail addresses in answers"
UNKNOWN_RULE: Final = "Does the text ask for medical advice?"


@dataclass(frozen=True, kw_only=True, slots=True)
class Example:
    """A published policy."""

    name: str
    rule: str
    direction: Direction
    mode: Mode
    scope: PolicyScope = PolicyScope.ORGANIZATION
    description: str = DESCRIPTION


EXAMPLES: Final = (
    Example(
        name="Card numbers",
        rule=demonstration_judge.CARD_NUMBERS,
        direction=Direction.REQUEST,
        mode=Mode.ENFORCING,
    ),
    Example(
        name="Passwords",
        rule=demonstration_judge.PASSWORDS,
        direction=Direction.REQUEST,
        mode=Mode.MONITORING,
    ),
    Example(
        name="E-mail addresses",
        rule=demonstration_judge.EMAIL_ADDRESSES,
        direction=Direction.BOTH,
        mode=Mode.MONITORING,
    ),
    Example(
        name=WITHHOLDING,
        rule=demonstration_judge.EMAIL_ADDRESSES,
        direction=Direction.RESPONSE,
        mode=Mode.ENFORCING,
        scope=PolicyScope.UNATTACHED,
        description=(
            "An example that withholds answers: each waits for its verdict, so that a stream "
            "arrives in one piece or not at all. It applies only to requests that name it in "
            "policy_ids."
        ),
    ),
    Example(
        name="Medical advice",
        rule=UNKNOWN_RULE,
        direction=Direction.REQUEST,
        mode=Mode.ENFORCING,
        scope=PolicyScope.UNATTACHED,
        description=(
            "An example that the demonstration judge cannot decide. It applies only to requests "
            "that name it in policy_ids."
        ),
    ),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class ExampleKeys:
    """The values of the new keys, which are not stored: one Admin key, one key per project."""

    admin: str
    projects: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Senders:
    """What the example requests need: a key per project, and the policies that they name."""

    project_keys: tuple[str, ...]
    unknown_policy: PolicyId
    withholding_policy: PolicyId


async def create(operator: Session, bars: Progress) -> None:
    """Create the example organization in an empty deployment."""
    owner = await create_organization(operator, ORGANIZATION)
    reason = KEY_NAME
    await grant_credit(operator, owner.id, kind=GrantKind.SANDBOX, amount=CREDIT, reason=reason)
    await _create_cap(operator, owner.id)
    users: list[ProjectKey] = []
    for name in PROJECTS:
        project = await create_project(operator, owner.id, name)
        user, _ = await create_project_key(operator, owner.id, project.id, EXAMPLE_KEY_NAME)
        users.append(user)
    for one in EXAMPLES:
        await _create_policy(operator, owner.id, one)
    await _create_usage(operator, owner.id, users, bars)
    await _create_near_cap(operator, owner.id, users[-1])


async def issue_sender_keys(operator: Session) -> Senders:
    """Create the keys that send the example requests and are then forgotten."""
    owner = await operator.organization(None)
    async with operator.database.transaction() as tx:
        found = await policies.page(tx, owner.id, after=None, limit=len(EXAMPLES))
    (unknown,) = (policy.id for policy in found if policy.draft.rule == UNKNOWN_RULE)
    (withholding,) = (policy.id for policy in found if policy.name == WITHHOLDING)
    values = await _create_project_keys(operator, owner.id, SENDER_KEY_NAME)
    return Senders(project_keys=values, unknown_policy=unknown, withholding_policy=withholding)


async def issue_keys(operator: Session) -> ExampleKeys:
    """Create the keys that are shown to the user.

    Called last, because values that are shown once would be lost if a later step failed.
    """
    owner = await operator.organization(None)
    values = await _create_project_keys(operator, owner.id, KEY_NAME)
    _, admin = await create_admin_key(operator, owner.id, KEY_NAME)
    return ExampleKeys(admin=admin.value, projects=values)


async def _create_project_keys(
    operator: Session, organization_id: OrganizationId, name: str
) -> tuple[str, ...]:
    """Create a key of each project, in the order of the projects. Return their values."""
    async with operator.database.transaction() as tx:
        found = await projects.page(tx, organization_id, after=None, limit=len(PROJECTS))
    values: list[str] = []
    for project in found:
        _, secret = await create_project_key(operator, organization_id, project.id, name)
        values.append(secret.value)
    return tuple(values)


async def _create_cap(operator: Session, organization_id: OrganizationId) -> None:
    cap_id = CapId(scope=CapScope.ORGANIZATION, scope_id=organization_id, period=Period.MONTH)
    await _set_cap(operator, organization_id, cap_id, CAP)


async def _create_near_cap(
    operator: Session, organization_id: OrganizationId, user: ProjectKey
) -> None:
    """Cap the project of this key so that most of the cap is used."""
    cap_id = CapId(scope=CapScope.PROJECT, scope_id=user.project_id, period=Period.LIFETIME)
    use = await _set_cap(operator, organization_id, cap_id, CAP)
    cents = use.settled_pico_usd * 100 // NEAR_CAP_PERCENT // CENT
    await _set_cap(operator, organization_id, cap_id, PicoUsd(cents * CENT))


async def _set_cap(
    operator: Session, organization_id: OrganizationId, cap_id: CapId, limit: PicoUsd
) -> CapUse:
    async with operator.database.mutation(operator.authority(organization_id)) as tx:
        return await ledger.set_cap(
            tx, cap_id, limit_pico_usd=limit, alert_percent=ALERT_PERCENT_DEFAULT
        )


async def _create_policy(operator: Session, organization_id: OrganizationId, one: Example) -> None:
    policy_id = PolicyId(time_ordered_uuid())
    content = PolicyContent(
        rule=one.rule,
        direction=one.direction,
        mode=one.mode,
        scope=one.scope,
        project_ids=(),
        match_threshold_basis_points=None,
    )
    threshold = operator.settings.policies.default_threshold_basis_points
    async with operator.database.mutation(operator.authority(organization_id)) as tx:
        policy = await policies.create(
            tx, policy_id=policy_id, name=one.name, description=one.description, content=content
        )
    async with operator.database.mutation(operator.authority(organization_id)) as tx:
        publication = Publish(default_threshold_basis_points=threshold)
        await policies.put_in_force(tx, policy_id, publication, revision=policy.revision)


async def _create_usage(
    operator: Session, organization_id: OrganizationId, users: list[ProjectKey], bars: Progress
) -> None:
    """Backfill usage of past days, each with its own credit, so that the balance stays."""
    now = operator.clock.now()
    task = bars.add_task("Creating example usage", total=DAYS * len(users))
    for days_ago in range(DAYS, 0, -1):
        for number, user in enumerate(users):
            await _backfill(operator, organization_id, _usage(user, number, days_ago, now))
            bars.advance(task)


async def _backfill(operator: Session, organization_id: OrganizationId, usage: PastUsage) -> None:
    await backfill.prepare(
        operator.database,
        usage,
        now=operator.clock.now(),
        entry_days=operator.settings.ledger.entry_days,
    )
    async with operator.database.mutation(operator.authority(organization_id)) as tx:
        await backfill.enter(tx, usage, reason=REASON)


def _usage(user: ProjectKey, number: int, days_ago: int, now: datetime) -> PastUsage:
    day = _day(now, days_ago)
    return PastUsage(
        project_id=user.project_id,
        api_key_id=user.id,
        model=EXAMPLE_MODELS[number],
        day=day,
        charge=_charge(number, days_ago, is_weekend=day.weekday() >= 5),  # noqa: PLR2004 - Saturday
    )


def _day(now: datetime, days_ago: int) -> date:
    return (now.astimezone(UTC) - timedelta(days=days_ago)).date()


def _charge(number: int, days_ago: int, *, is_weekend: bool) -> Charge:
    """Return a charge that rises over the days and drops at weekends; no randomness."""
    level = (60 - days_ago + days_ago * 7 % 13) * (1 if is_weekend else 3) // (number + 1)
    thousandth = PICO_USD_PER_USD // 1_000
    return Charge(
        input_tokens=level * 4_000,
        cached_input_tokens=level * 900,
        output_tokens=level * 700,
        input_pico_usd=PicoUsd(level * 4 * thousandth),
        cached_input_pico_usd=PicoUsd(level * thousandth // 4),
        output_pico_usd=PicoUsd(level * 3 * thousandth),
    )
