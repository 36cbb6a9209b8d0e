"""`tollhouse org create-from`, and the money of organizations in `org list` and `org show`."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import asyncpg
import pytest

from tests.cli.commands import Operator
from tests.cli.documents import read, scripts
from tests.ledger.money import Payer, posted
from tests.ledger.sending import send
from tollhouse.app import connect
from tollhouse.base.ids import OrganizationId, ProjectId, ProjectKeyId
from tollhouse.ledger import overview
from tollhouse.ledger.types import ResolutionKind
from tollhouse.settings import load
from tollhouse.storage.database import Database

DECLARED = """
name = "Example Ltd"
credit = "25.5"

[[caps]]
period = "month"
limit = "100"

[[admin_keys]]
name = "finance"

[[projects]]
name = "shop"

[[projects.caps]]
period = "day"
limit = "5"
alert_percent = 50

[[projects.keys]]
name = "web"
models = ["example/model-a"]

[[projects.keys.caps]]
period = "week"
limit = "2"

[[projects.keys]]
name = "batch"
expires_in_days = 30

[[projects]]
name = "search"
"""


def declared(folder: Path, text: str) -> str:
    path = folder / "organization.toml"
    path.write_text(text)
    return str(path)


def test_a_file_makes_an_organization_with_all_its_parts(
    operator: Operator, tmp_path: Path
) -> None:
    made = operator.json("org", "create-from", declared(tmp_path, DECLARED))

    org = ("--org", made["id"])
    assert [(key["type"], key["project"], key["name"]) for key in made["data"]] == [
        ("admin_api_key", None, "finance"),
        ("project_api_key", "shop", "web"),
        ("project_api_key", "shop", "batch"),
    ]
    assert len({key["value"] for key in made["data"]}) == 3
    assert operator.json("org", "show", made["id"])["available"]["value"] == "25.5"
    projects = operator.json("project", "list", *org)["data"]
    assert [project["name"] for project in projects] == ["shop", "search"]
    web = operator.json("key", "show", made["data"][1]["id"], *org)
    assert web["allowed_models"] == ["example/model-a"]
    assert "value" not in web or web["value"] is None
    caps = operator.json("caps", "show", *org)["data"]
    assert sorted((cap["scope"], cap["period"], cap["limit"]["value"]) for cap in caps) == [
        ("api_key", "week", "2"),
        ("organization", "month", "100"),
        ("project", "day", "5"),
    ]
    assert len(operator.json("audit", *org)["data"]) == 10


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('name = "shop"', 'nam = "shop"', "nam"),
        ('period = "day"', 'period = "year"', "year"),
        ('limit = "5"', 'limit = "-5"', "limit"),
        ('name = "batch"', 'name = "web"', "'web' stands there twice"),
        ('credit = "25.5"', "credit = 25.5", "credit"),
        ("[[caps]]", "[[caps", "declares no organization"),
    ],
)
def test_a_wrong_file_is_refused_before_anything_is_created(
    operator: Operator, tmp_path: Path, before: str, after: str, said: str
) -> None:
    count = len(operator.json("org", "list")["data"])
    path = declared(tmp_path, DECLARED.replace(before, after))

    assert said in operator.run("org", "create-from", path, exit_code=2).stderr
    assert len(operator.json("org", "list")["data"]) == count


def test_a_failure_in_the_middle_leaves_nothing(operator: Operator, tmp_path: Path) -> None:
    """A grant of nothing is refused after the organization was inserted."""
    count = len(operator.json("org", "list")["data"])
    path = declared(tmp_path, DECLARED.replace('credit = "25.5"', 'credit = "0"'))

    assert operator.failure_code("org", "create-from", path) == "invalid_value"
    assert len(operator.json("org", "list")["data"]) == count


def test_a_file_without_keys_shows_no_value(operator: Operator, tmp_path: Path) -> None:
    path = declared(tmp_path, 'name = "bare"')

    printed = operator.run("org", "create-from", path)

    assert printed.stdout.startswith("Created organization ")
    assert len(printed.stdout.splitlines()) == 1
    assert operator.json("org", "create-from", path)["data"] == []


async def spend(settings_path: Path, payer: Payer) -> None:
    """One request that is charged, one that is written off, one whose end is unknown."""
    database = await connect(load(settings_path))
    holds = [payer.hold(10**12 * amount) for amount in (1, 2, 2)]
    await send(database, [], holds)
    charged = posted(holds[0], 4 * 10**11)
    lost = posted(holds[1], 0)
    object.__setattr__(lost, "kind", ResolutionKind.WRITE_OFF)
    await send(database, [charged, lost], [])
    async with database.transaction() as tx:
        await tx.execute(
            """
            INSERT INTO unsettled_holds (organization_id, admitted_day, reservation_id, held_pico,
                                         admitted_at, project_id, api_key_id, decide_at)
            VALUES ($1, $2, $3, $4, now(), $5, $6, now() + interval '1 hour')
            """,
            payer.organization_id,
            holds[2].admitted_day,
            holds[2].reservation_id,
            holds[2].amount_pico_usd,
            payer.project_id,
            payer.api_key_id,
        )
    await database.close()


def test_the_operator_sees_what_each_organization_has_and_spent(
    operator: Operator, tmp_path: Path
) -> None:
    made = operator.json("org", "create-from", declared(tmp_path, DECLARED))
    batch = made["data"][2]
    payer = Payer(
        OrganizationId(UUID(made["id"])),
        ProjectId(UUID(batch["project_id"])),
        ProjectKeyId(UUID(batch["id"])),
    )
    asyncio.run(spend(operator.settings_path, payer))

    shown = operator.json("org", "show", made["id"])

    names = ("available", "spent", "spent_this_month", "held", "unsettled", "written_off")
    assert {name: shown[name]["value"] for name in names} == {
        "available": "23.1",
        "spent": "0.4",
        "spent_this_month": "0.4",
        "held": "2",
        "unsettled": "2",
        "written_off": "2",
    }
    assert shown["unsettled_requests"] == 1
    hour = datetime.now(UTC).timestamp() // 3600 * 3600
    assert shown["last_charged_at"] in {hour, hour - 3600}
    everyone = operator.json("org", "list")["data"]
    assert shown in everyone
    paged = [
        operator.json("org", "list", "--limit", "1", "--after", one["id"])["data"][0]
        for one in everyone[:-1]
    ]
    assert paged == everyone[1:]


def test_the_guide_can_be_followed_to_its_end(patient: Operator) -> None:
    create, list_all, show = scripts(read("docs/guides/organizations.md"))

    created = patient.bash(create).stdout
    (organization,) = patient.json("org", "list")["data"]
    patient.environment["ORGANIZATION_ID"] = organization["id"]

    assert organization["id"] in created
    assert "finance" in created
    assert organization["id"] in patient.bash(list_all).stdout
    assert "last_charged_at" in patient.bash(show).stdout


@pytest.mark.nightly
async def test_a_page_reads_a_few_rows_for_each_organization(
    database: Database, database_url: str
) -> None:
    """Of 20,000 organizations with a hundred hours each, a page of a hundred reads its own."""
    connection = await asyncpg.connect(database_url)
    await connection.execute(
        """
        INSERT INTO organizations (id, name, status, created_at)
        SELECT lpad(to_hex(n), 32, '0')::uuid, 'o', 'active', now()
          FROM generate_series(1, 20000) n
        """
    )
    await connection.execute(
        """
        INSERT INTO cost_hourly (organization_id, hour, project_id, api_key_id, model, requests,
            input_tokens, cached_input_tokens, output_tokens, images, input_pico,
            cached_input_pico, output_pico, image_pico, request_pico)
        SELECT lpad(to_hex(n), 32, '0')::uuid, now() - hour * interval '1 hour',
               gen_random_uuid(), gen_random_uuid(), 'm', 1, 0, 0, 0, 0, 0, 0, 0, 0, 0
          FROM generate_series(1, 20000) n, generate_series(1, 10) hour
        """
    )
    await connection.execute("ANALYZE")
    rows = await connection.fetch("SELECT id FROM organizations ORDER BY id LIMIT 100")
    ids = [OrganizationId(row["id"]) for row in rows]

    async with database.transaction() as tx:
        await overview.money_of(tx, ids, now=datetime.now(UTC))
        await tx.execute("SELECT pg_stat_reset()")
        found = await overview.money_of(tx, ids, now=datetime.now(UTC))
        scanned = await tx.fetch_value(
            "SELECT coalesce(sum(pg_stat_get_xact_tuples_returned(oid)"
            " + pg_stat_get_xact_tuples_fetched(oid)), 0)::bigint"
            " FROM pg_class WHERE relkind = 'r'"
            " AND relname IN ('accounts', 'cost_hourly', 'spending_counters', 'unsettled_holds')"
        )
    await connection.close()

    assert len(found) == 100
    assert all(money.last_charged_at is not None for money in found.values())
    assert scanned <= 2 * 3 * len(ids)
