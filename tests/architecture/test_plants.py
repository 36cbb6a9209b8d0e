"""Each check finds its plant wherever the file lies, also in a package that does not exist yet."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from tools.checks import examined
from tools.checks.__main__ import findings
from tools.checks.source import Finding, Source, drain, read
from tools.mutants import targets

ROOT = Path(__file__).parents[2]
PLACES = ("admin", "inference/responses", "api/handlers/of/another")
"""Where each plant is put besides its home. The first package does not exist."""


@dataclass(frozen=True, kw_only=True)
class Plant:
    """A text that breaks the rule of a check, and a part of what the check says."""

    check: str
    home: str
    text: str
    said: str
    suffix: str = "py"

    def __str__(self) -> str:
        return f"{self.check}, {self.suffix}: {self.said}"

    def path(self, place: str) -> str:
        return f"src/tollhouse/{place}/planted_{PLANTS.index(self)}.{self.suffix}"


CROSS_TENANT = """
_EVERY: Final = "SELECT id, name FROM projects ORDER BY id"


async def every(tx: Transaction, limit: int) -> list[Row]:
    return await tx.fetch_all(_EVERY, limit)
"""
CROSS_TENANT_METHOD = """
class Directory:
    async def every(self, tx: Transaction) -> list[Row]:
        return await tx.fetch_all("SELECT id FROM project_keys")
"""
UNSCOPED_FUNCTION = """
-- Names; of all.
CREATE FUNCTION every_name() RETURNS SETOF text LANGUAGE sql AS $$
    SELECT name FROM projects;
$$;
"""
OWN_MUTATION = """
async def handler(self, call: OperationCall[Admin, None, None]) -> None:
    async with self.pool.mutation(authority_of(call)) as tx:
        await projects.archive(tx)
"""
BUILT = """
async def get(tx: Transaction, column: str) -> None:
    await tx.execute(f"SELECT {column} FROM instances")
"""
HALVED = """
def halved(paid: PicoUsd) -> None:
    return whole / 2
"""
PLANTS = [
    Plant(check="tenancy", home="projects", text=CROSS_TENANT, said="`every` must take"),
    Plant(check="tenancy", home="keys", text=CROSS_TENANT_METHOD, said="`every` must take"),
    Plant(
        check="tenancy",
        home="storage/schema",
        text=UNSCOPED_FUNCTION,
        said="must start from organization_id",
        suffix="sql",
    ),
    Plant(
        check="tenancy",
        home="storage/schema",
        text="SELECT id FROM projects WHERE name = $1;",
        said="must start from organization_id",
        suffix="sql",
    ),
    Plant(check="mutations", home="manage", text=OWN_MUTATION, said="mutation_by(call)"),
    Plant(check="statements", home="storage", text=BUILT, said="SQL must be a literal"),
    Plant(check="money", home="ledger", text=HALVED, said="a true division near money"),
    Plant(check="money", home="base", text="cost = 0.5", said="a float literal near money"),
    Plant(
        check="handlers",
        home="api",
        text="try:\n    work()\nexcept Exception:\n    pass",
        said="catch the class",
    ),
    Plant(
        check="log_fields",
        home="serving",
        text="logger.info('event', extra={'planted': 1})",
        said="`planted` is not in FIELDS",
    ),
    Plant(check="sizes", home="api", text="x = 1\n" * 401, said="401 lines in one file"),
    Plant(check="names", home="evaluation", text="class Court: ...", said="Court was replaced"),
    Plant(check="phrases", home="cli", text="# Paid by\n# nobody.\nx = 1", said="'nobody'"),
    Plant(
        check="phrases",
        home="storage/schema",
        text="-- Read by nobody.\nSELECT 1;",
        said="'nobody'",
        suffix="sql",
    ),
    Plant(
        check="tables",
        home="storage/schema",
        text="CREATE TABLE orphans (id uuid);",
        said="orphans has no owner",
        suffix="sql",
    ),
    Plant(
        check="tables",
        home="storage/migrations/versions",
        text='run("CREATE TABLE orphans (id uuid)")',
        said="orphans has no owner",
    ),
    Plant(
        check="tables",
        home="storage/schema",
        text="-- A table;\nCREATE TABLE orphans (id uuid);",
        said="orphans has no owner",
        suffix="sql",
    ),
    Plant(
        check="tables",
        home="api",
        text="SELECT 1 FROM accounts WHERE organization_id = $1;",
        said="accounts, which belongs to ledger",
        suffix="sql",
    ),
]


@pytest.fixture(scope="module")
def found() -> set[Finding]:
    """What the checks say of the package with each plant at its home and three other places."""
    planted = [
        Source.parse(plant.path(place), plant.text)
        for plant in PLANTS
        for place in (plant.home, *PLACES)
    ]
    return set(drain(findings([*read(ROOT), *planted]))[0])


@pytest.mark.parametrize("plant", PLANTS, ids=str)
def test_a_plant_is_found_at_its_home_and_anywhere_else(plant: Plant, found: set[Finding]) -> None:
    for place in (plant.home, *PLACES):
        assert any(
            finding.path == plant.path(place) and plant.said in finding.message for finding in found
        ), place


def test_each_check_of_sources_has_a_plant() -> None:
    _, counts = drain(findings([Source.parse("src/tollhouse/api/empty.py", "")]))

    assert {plant.check for plant in PLANTS} == counts.keys() - {"files"}


@pytest.mark.parametrize("place", ["ledger", "storage/schema", *PLACES])
def test_sql_and_new_packages_are_mutated_anywhere(place: str) -> None:
    planted = Source.parse(f"src/tollhouse/{place}/planted.sql", UNSCOPED_FUNCTION)
    assert sum(targets.examined([planted]).values()) == 1
    if not place.startswith("storage"):
        moved = Source.parse(f"src/tollhouse/{place}/planted.py", CROSS_TENANT)
        assert sum(targets.examined([moved]).values()) == 2


def test_a_number_that_fell_is_found_until_it_is_written(tmp_path: Path) -> None:
    (tmp_path / examined.PATH).parent.mkdir(parents=True)
    examined.write(tmp_path, {"checks": {"tenancy": 200, "tables": 50, "gone": 5}})

    def said(**counts: int) -> list[str]:
        return [found.message for found in examined.check(tmp_path, {"checks": counts})]

    assert not said(tenancy=198, tables=55, gone=6)
    assert len(said(tenancy=197, tables=49, gone=0)) == 3
    assert "and has no number" in said(tenancy=200, tables=50, gone=5, new=1)[0]
    assert "only 50 before" in said(tenancy=200, tables=61, gone=5)[0]
