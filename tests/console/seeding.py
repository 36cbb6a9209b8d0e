"""An organization that has been used for a while: something for every page of the console."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta
from typing import Final

from tests.console.judging import enter_past_scores
from tests.support.limits import set_limit
from tests.support.organization_fixture import HeldProjectKey, OrganizationFixture
from tests.support.policies import CONTENT, new_policy
from tests.support.spending import Spender
from tollhouse.base.ids import InstanceId, policy_id_text, time_ordered_uuid
from tollhouse.base.money import PicoUsd
from tollhouse.base.policies import Direction, Mode
from tollhouse.base.tasks import Tasks
from tollhouse.base.traffic import TrafficLimits
from tollhouse.ledger import backfill
from tollhouse.ledger.batcher import Batcher
from tollhouse.ledger.types import CapScope, Charge, PastUsage, Period
from tollhouse.limits.types import LimitOwner, LimitScope
from tollhouse.policies.types import Policy, PolicyScope
from tollhouse.projects.types import Project
from tollhouse.storage import instances

DAYS: Final = 35
USD: Final = 10**12
KEPT_DAYS: Final = 400
TIMEOUT_SECONDS: Final = 120.0
CARDS_THRESHOLD: Final = 8_000
FINANCE: Final = ("activity:read", "billing:read", "spending_limits:read")


@dataclass(frozen=True, kw_only=True)
class Seeded:
    """What a test must know to walk through the console."""

    admin_key: str
    narrow_key: str
    reading_key: str
    project_key: str
    judged_key: str
    project_id: str
    policy_id: str
    judging_policy_id: str


async def seed(org: OrganizationFixture) -> Seeded:
    """A month and a half of usage, keys and policies in every state, caps and an unknown end."""
    deployment, search, old = [await org.project(name) for name in ("Shop", "Search", "Old site")]
    web = await org.project_key(deployment, name="Web")
    nightly = await org.project_key(deployment, name="Nightly report")
    crawler = await org.project_key(search, name="Crawler")
    await _keys(org, search)
    await _use(org, [web, nightly, crawler])
    await _spend(org, web)
    await org.archive(old)
    paused, judging = await _policies(org, deployment, search)
    await _limits(org, deployment)
    await org.admin_key(FINANCE, name="Finance reports")
    return Seeded(
        admin_key=(await org.admin_key(name="Console")).value,
        narrow_key=(await org.admin_key(("projects:read",), name="Only projects")).value,
        reading_key=(await org.admin_key(("policies:read",), name="Only reads")).value,
        project_key=web.value,
        judged_key=crawler.value,
        project_id=str(deployment.id),
        policy_id=policy_id_text(paused.id),
        judging_policy_id=policy_id_text(judging.id),
    )


async def _keys(org: OrganizationFixture, project: Project) -> None:
    await org.suspend_project_key(await org.project_key(project, name="Suspended"))
    await org.revoke_project_key(await org.project_key(project, name="Revoked"))
    await org.project_key(project, name="Trial", expires_at=datetime.now(UTC) + timedelta(days=48))


async def _use(org: OrganizationFixture, keys: list[HeldProjectKey]) -> None:
    """Usage as an operator enters it, on every day but the weekends of one key."""
    now = datetime.now(UTC)
    for days_ago in range(DAYS, -1, -1):
        day = (now - timedelta(days=days_ago)).date()
        for number, held in enumerate(keys):
            if number == 1 and day.weekday() >= 5:
                continue
            usage = PastUsage(
                project_id=held.key.project_id,
                api_key_id=held.key.id,
                model="example/large" if number < 2 else "example/small",
                day=day,
                charge=_charge(days_ago, number),
            )
            await backfill.prepare(org.database, usage, now=now, entry_days=KEPT_DAYS)
            authority = org.authority(datetime.combine(day, time(0, 5), UTC))
            async with org.database.mutation(authority) as tx:
                await backfill.enter(tx, usage, reason="an example")


def _charge(days_ago: int, number: int) -> Charge:
    """A wave with a slow rise, the same on every run."""
    level = 60 - days_ago + (days_ago * 7 + number * 5) % 23
    return Charge(
        input_tokens=level * 9_000,
        cached_input_tokens=level * 1_200,
        output_tokens=level * 2_100,
        input_pico_usd=PicoUsd(level * 31 * USD // (1_000 * (number + 1))),
        cached_input_pico_usd=PicoUsd(level * 3 * USD // 1_000),
        output_pico_usd=PicoUsd(level * 47 * USD // (1_000 * (number + 2))),
    )


async def _spend(org: OrganizationFixture, held: HeldProjectKey) -> None:
    """Credit, caps, and two requests: one that was settled, one whose worker is gone."""
    tasks = Tasks()
    instance_id = await _dead_instance(org)
    batcher = Batcher(org.database, tasks, instance_id, own_batches_max=1)
    spender = Spender(org, batcher, held.key.project_id, held.key.id)
    await spender.grant(400 * USD)
    await spender.set_cap(spender.place(CapScope.ORGANIZATION, Period.MONTH), 1_000 * USD)
    await spender.set_cap(spender.place(CapScope.PROJECT, Period.MONTH), 400 * USD)
    await spender.set_cap(spender.place(CapScope.KEY, Period.LIFETIME), 130 * USD)
    await spender.spend(USD // 4)
    await spender.reserve(USD // 2)
    await tasks.drain(deadline_seconds=TIMEOUT_SECONDS)


async def _dead_instance(org: OrganizationFixture) -> InstanceId:
    """A worker that has not been heard of for an hour."""
    instance_id = InstanceId(time_ordered_uuid())
    async with org.database.transaction() as tx:
        await instances.heartbeat(tx, instance_id)
        await tx.execute(
            "UPDATE instances SET heartbeat_at = heartbeat_at - interval '1 hour' WHERE id = $1",
            instance_id,
        )
    return instance_id


async def _limits(org: OrganizationFixture, project: Project) -> None:
    """The operator's bound on everything, and one of the organization's own."""
    await set_limit(
        org,
        TrafficLimits(requests_per_minute=6_000, concurrent_requests=200),
        owner=LimitOwner.OPERATOR,
    )
    await set_limit(
        org,
        TrafficLimits(requests_per_minute=600, tokens_per_minute=200_000),
        scope=LimitScope.PROJECT,
        scope_id=project.id,
    )


async def _policies(
    org: OrganizationFixture, deployment: Project, search: Project
) -> tuple[Policy, Policy]:
    """One in every state; returns the one that is paused, and the one that enforces."""
    await new_policy(org, name="Competitor names")
    await new_policy(
        org,
        ("publish",),
        name="Legal advice",
        content=replace(CONTENT, rule="Does the text give legal advice?"),
    )
    cards = await new_policy(
        org,
        ("publish",),
        name="Card numbers",
        content=replace(
            CONTENT,
            rule="Does the text contain a payment card number?",
            direction=Direction.REQUEST,
            mode=Mode.ENFORCING,
            scope=PolicyScope.PROJECTS,
            project_ids=(search.id,),
            match_threshold_basis_points=CARDS_THRESHOLD,
        ),
    )
    await enter_past_scores(org, cards.id, threshold=CARDS_THRESHOLD)
    paused = await new_policy(
        org,
        ("publish", "pause"),
        name="Home addresses",
        content=replace(
            CONTENT,
            rule="Does the text contain the home address of a private person?",
            scope=PolicyScope.PROJECTS,
            project_ids=(deployment.id,),
        ),
    )
    return paused, cards
