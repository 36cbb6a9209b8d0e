"""Sealed secrets: readable for a day by those who know what they are bound to, and then never."""

from datetime import UTC, date, datetime, timedelta

import pytest

from tollhouse.storage.database import Database
from tollhouse.storage.master_secrets import MasterSecrets
from tollhouse.storage.sealing import DataKeyGone, Sealed, Sealer

MASTER = MasterSecrets([b"a master secret of the deployment"])
NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)
LAST_MOMENT = datetime(2026, 3, 10, 23, 59, 59, 999_999, tzinfo=UTC)
PLAINTEXT = b"thp_something secret"
OWNER = b"an organization and its idempotency key"


@pytest.fixture
def sealer(database: Database) -> Sealer:
    return Sealer(database, MASTER)


async def sealed_at(sealer: Sealer, now: datetime) -> Sealed:
    return await sealer.seal(PLAINTEXT, bound_to=OWNER, now=now)


async def days(database: Database) -> list[date]:
    rows = await database.fetch_all("SELECT day FROM data_keys ORDER BY day")
    return [row["day"] for row in rows]


async def test_what_was_sealed_can_be_opened_by_any_worker(
    database: Database, sealer: Sealer
) -> None:
    sealed = await sealed_at(sealer, NOON)

    assert await sealer.open(sealed, bound_to=OWNER, now=NOON) == PLAINTEXT
    assert await Sealer(database, MASTER).open(sealed, bound_to=OWNER, now=NOON) == PLAINTEXT


async def test_the_ciphertext_does_not_repeat_and_does_not_show_what_is_in_it(
    sealer: Sealer,
) -> None:
    first, second = await sealed_at(sealer, NOON), await sealed_at(sealer, NOON)

    assert first.ciphertext != second.ciphertext
    assert first.ciphertext[:12] != second.ciphertext[:12]
    assert PLAINTEXT not in first.ciphertext


async def test_it_opens_only_with_what_it_was_bound_to(sealer: Sealer) -> None:
    sealed = await sealed_at(sealer, NOON)

    for other in (b"", OWNER[:-1], OWNER + b" ", b"somebody else"):
        with pytest.raises(DataKeyGone):
            await sealer.open(sealed, bound_to=other, now=NOON)


async def test_a_changed_ciphertext_does_not_open(sealer: Sealer) -> None:
    sealed = await sealed_at(sealer, NOON)
    whole = sealed.ciphertext
    flipped = [
        whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]
        for place in range(len(whole))
    ]

    for changed in (*flipped, whole[:-1], whole + b"\0", whole[:12]):
        with pytest.raises(DataKeyGone):
            await sealer.open(Sealed(ciphertext=changed, day=sealed.day), bound_to=OWNER, now=NOON)


async def test_another_master_secret_opens_nothing_and_says_so(
    database: Database, sealer: Sealer
) -> None:
    sealed = await sealed_at(sealer, NOON)
    other = Sealer(database, MasterSecrets([b"another master secret"]))

    with pytest.raises(DataKeyGone):
        await other.open(sealed, bound_to=OWNER, now=NOON)


async def test_a_data_key_does_not_serve_another_day(database: Database, sealer: Sealer) -> None:
    sealed = await sealed_at(sealer, NOON)
    async with database.transaction() as tx:
        await tx.execute("UPDATE data_keys SET day = day + 1")
    moved = Sealed(ciphertext=sealed.ciphertext, day=sealed.day + timedelta(days=1))

    with pytest.raises(DataKeyGone):
        await Sealer(database, MASTER).open(moved, bound_to=OWNER, now=NOON)


async def test_each_day_has_a_data_key_of_its_own(database: Database, sealer: Sealer) -> None:
    before = await sealed_at(sealer, LAST_MOMENT)
    after = await sealed_at(sealer, LAST_MOMENT + timedelta(microseconds=1))

    assert await days(database) == [before.day, after.day] == [date(2026, 3, 10), date(2026, 3, 11)]
    assert await sealer.open(before, bound_to=OWNER, now=NOON) == PLAINTEXT
    assert await sealer.open(after, bound_to=OWNER, now=NOON) == PLAINTEXT
    with pytest.raises(DataKeyGone):
        await sealer.open(
            Sealed(ciphertext=before.ciphertext, day=after.day), bound_to=OWNER, now=NOON
        )


async def test_workers_that_seal_first_at_once_agree_on_the_days_data_key(
    database: Database,
) -> None:
    first, second = Sealer(database, MASTER), Sealer(database, MASTER)

    sealed_by_first = await sealed_at(first, NOON)
    sealed_by_second = await sealed_at(second, NOON)

    assert await days(database) == [NOON.date()]
    assert await first.open(sealed_by_second, bound_to=OWNER, now=NOON) == PLAINTEXT
    assert await second.open(sealed_by_first, bound_to=OWNER, now=NOON) == PLAINTEXT


async def test_a_secret_sealed_in_the_last_moment_of_a_day_opens_for_24_hours(
    sealer: Sealer,
) -> None:
    sealed = await sealed_at(sealer, LAST_MOMENT)
    a_day_later = LAST_MOMENT + timedelta(hours=24)

    destroyed = await sealer.destroy_old(a_day_later)

    assert destroyed == 0
    assert await sealer.open(sealed, bound_to=OWNER, now=a_day_later) == PLAINTEXT


@pytest.mark.guarantee("I10")
async def test_48_hours_after_its_day_began_nothing_of_that_day_opens(
    database: Database, sealer: Sealer
) -> None:
    midnight = datetime(2026, 3, 10, tzinfo=UTC)
    sealed = await sealed_at(sealer, midnight)

    too_early = await sealer.destroy_old(midnight + timedelta(hours=48, microseconds=-1))
    in_time = await sealer.destroy_old(midnight + timedelta(hours=48))

    assert (too_early, in_time) == (0, 1)
    assert await days(database) == []
    for worker in (sealer, Sealer(database, MASTER)):
        with pytest.raises(DataKeyGone):
            await worker.open(sealed, bound_to=OWNER, now=NOON)


@pytest.mark.guarantee("I10")
async def test_a_worker_that_remembers_a_destroyed_data_key_opens_nothing_with_it(
    database: Database, sealer: Sealer
) -> None:
    midnight = datetime(2026, 3, 10, tzinfo=UTC)
    sealed = await sealed_at(sealer, midnight)
    end = midnight + timedelta(hours=48)
    await Sealer(database, MASTER).destroy_old(end)

    with pytest.raises(DataKeyGone):
        await sealer.open(sealed, bound_to=OWNER, now=end)
    with pytest.raises(DataKeyGone):
        await sealer.open(sealed, bound_to=OWNER, now=midnight)


async def test_destroying_spares_younger_days(database: Database, sealer: Sealer) -> None:
    for age_days in (4, 3, 2, 1, 0):
        await sealed_at(sealer, NOON - timedelta(days=age_days))

    destroyed = await sealer.destroy_old(NOON)

    assert destroyed == 3
    assert await days(database) == [date(2026, 3, 9), date(2026, 3, 10)]


async def test_a_worker_that_remembers_a_destroyed_data_key_does_not_seal_with_it(
    database: Database, sealer: Sealer
) -> None:
    await sealed_at(sealer, NOON)
    await Sealer(database, MASTER).destroy_old(NOON + timedelta(days=3))

    sealed = await sealed_at(sealer, NOON + timedelta(days=3))

    assert await Sealer(database, MASTER).open(sealed, bound_to=OWNER, now=NOON) == PLAINTEXT
