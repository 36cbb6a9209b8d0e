"""An organization that has been used for a while: something for every page of the console."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta
from typing import Final

from tests.console.judging import enter_past_scores
from tests.support.limits import set_limit
from tests.support.policies import CONTENT, new_policy
from tests.support.spending import Spender
from tests.support.world import HeldProjectKey, World
from tollhouse.base.ids import InstanceId, policy_id_text, time_ordered_uuid
from tollhouse.base.money import PicoUsd
from tollhouse.base.tasks import Tasks
from tollhouse.base.traffic import TrafficLimits
from tollhouse.ledger import backfill
from tollhouse.ledger.batcher import Batcher
from tollhouse.ledger.types import Charge, PastUsage, Period, Scope
from tollhouse.limits.types import Owner
from tollhouse.limits.types import Scope as LimitScope
from tollhouse.policies.types import Direction, Mode, Policy
from tollhouse.policies.types import Scope as PolicyScope
from tollhouse.projects.types import Project
from tollhouse.storage import instances

DAYS: Final = 35
USD: Final = 10**12
KEPT_DAYS: Final = 400
PATIENCE_SECONDS: Final = 120.0
CARDS_THRESHOLD: Final = 8_000


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


async def seed(world: World) -> Seeded:
    """A month and a half of usage, keys and policies in every state, caps and an unknown end."""
    shop, search, old = [await world.project(name) for name in ("Shop", "Search", "Old site")]
    web = await world.project_key(shop, name="Web")
    nightly = await world.project_key(shop, name="Nightly report")
    crawler = await world.project_key(search, name="Crawler")
    await _keys(world, search)
    await _use(world, [web, nightly, crawler])
    await _spend(world, web)
    await world.archive(old)
    paused, judging = await _policies(world, shop, search)
    await _limits(world, shop)
    return Seeded(
        admin_key=(await world.admin_key(name="Console")).value,
        narrow_key=(await world.admin_key(("projects:read",), name="Only projects")).value,
        reading_key=(await world.admin_key(("policies:read",), name="Only reads")).value,
        project_key=web.value,
        judged_key=crawler.value,
        project_id=str(shop.id),
        policy_id=policy_id_text(paused.id),
        judging_policy_id=policy_id_text(judging.id),
    )


async def _keys(world: World, project: Project) -> None:
    await world.suspend_project_key(await world.project_key(project, name="Suspended"))
    await world.revoke_project_key(await world.project_key(project, name="Revoked"))
    await world.project_key(
        project, name="Trial", expires_at=datetime.now(UTC) + timedelta(days=48)
    )


async def _use(world: World, keys: list[HeldProjectKey]) -> None:
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
            await backfill.prepare(world.database, usage, now=now, entry_days=KEPT_DAYS)
            authority = world.authority(datetime.combine(day, time(0, 5), UTC))
            async with world.database.mutation(authority) as tx:
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


async def _spend(world: World, held: HeldProjectKey) -> None:
    """Credit, caps, and two requests: one that was settled, one whose worker is gone."""
    tasks = Tasks()
    instance_id = await _dead_instance(world)
    batcher = Batcher(world.database, tasks, instance_id, own_batches_max=1)
    spender = Spender(world, batcher, held.key.project_id, held.key.id)
    await spender.grant(400 * USD)
    await spender.set_cap(spender.place(Scope.ORGANIZATION, Period.MONTH), 1_000 * USD)
    await spender.set_cap(spender.place(Scope.PROJECT, Period.MONTH), 400 * USD)
    await spender.set_cap(spender.place(Scope.KEY, Period.LIFETIME), 130 * USD)
    await spender.spend(USD // 4)
    await spender.reserve(USD // 2)
    await tasks.drain(deadline_seconds=PATIENCE_SECONDS)


async def _dead_instance(world: World) -> InstanceId:
    """A worker that has not been heard of for an hour."""
    instance_id = InstanceId(time_ordered_uuid())
    async with world.database.transaction() as tx:
        await instances.heartbeat(tx, instance_id, pepper_versions=world.peppers.versions)
        await tx.execute(
            "UPDATE instances SET heartbeat_at = heartbeat_at - interval '1 hour' WHERE id = $1",
            instance_id,
        )
    return instance_id


async def _limits(world: World, project: Project) -> None:
    """The operator's bound on everything, and one of the organization's own."""
    await set_limit(
        world,
        TrafficLimits(requests_per_minute=6_000, concurrent_requests=200),
        owner=Owner.OPERATOR,
    )
    await set_limit(
        world,
        TrafficLimits(requests_per_minute=600, tokens_per_minute=200_000),
        scope=LimitScope.PROJECT,
        scope_id=project.id,
    )


async def _policies(world: World, shop: Project, search: Project) -> tuple[Policy, Policy]:
    """One in every state; returns the one that is paused, and the one that enforces."""
    await new_policy(world, name="Competitor names")
    await new_policy(
        world,
        ("publish",),
        name="Legal advice",
        content=replace(CONTENT, rule="Does the text give legal advice?"),
    )
    cards = await new_policy(
        world,
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
    await enter_past_scores(world, cards.id, threshold=CARDS_THRESHOLD)
    paused = await new_policy(
        world,
        ("publish", "pause"),
        name="Home addresses",
        content=replace(
            CONTENT,
            rule="Does the text contain the home address of a private person?",
            scope=PolicyScope.PROJECTS,
            project_ids=(shop.id,),
        ),
    )
    return paused, cards
