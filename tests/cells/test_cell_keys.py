"""Keys that name their cell: their form, what is shown of them, and where they are known."""

import logging
import re

import httpx2
import pytest
from msgspec.structs import replace

from tests.support.credentials import RANDOM_LENGTH, checksum, unknown_key
from tests.support.gateway import running_gateway
from tests.support.organization_fixture import OrganizationFixture, new_organization_fixture
from tollhouse.keys.secrets import cell_of, is_well_formed, mint, redact
from tollhouse.keys.types import KeyKind
from tollhouse.observability import log
from tollhouse.settings import Settings
from tollhouse.storage.database import Database

LONGEST = "a23456789012345f"


@pytest.mark.parametrize(
    ("kind", "prefix"), [(KeyKind.PROJECT, "thp_eu1_"), (KeyKind.ADMIN, "tha_eu1_")]
)
def test_a_new_key_names_the_cell_before_its_secret(kind: KeyKind, prefix: str) -> None:
    secret = mint(kind, cell="eu1")

    body = secret.value.removeprefix(prefix)
    assert re.fullmatch("[0-9A-Za-z]{49}", body)
    assert secret.value[-6:] == checksum(secret.value[:-6])
    assert secret.redacted_value == f"{prefix}{body[:4]}...{body[-4:]}"
    assert is_well_formed(secret.value)
    assert cell_of(secret.value) == "eu1"


def test_a_key_without_a_cell_stays_well_formed() -> None:
    value = unknown_key("thp_")

    assert is_well_formed(value)
    assert cell_of(value) is None
    assert redact(value) == f"{value[:8]}...{value[-4:]}"


@pytest.mark.parametrize(
    "prefix",
    ["thp_EU1_", "thp_1eu_", "thp__", "thp_eu-1_", f"thp_{LONGEST}x_", "thp_eu1_us1_", "thx_eu1_"],
)
def test_another_form_of_cell_is_no_key(prefix: str) -> None:
    value = unknown_key(prefix)

    assert not is_well_formed(value)
    assert cell_of(value) is None


def test_the_cell_is_covered_by_the_checksum() -> None:
    value = unknown_key("thp_eu1_")

    assert is_well_formed(value)
    assert not is_well_formed(value.replace("eu1", "us1"))


@pytest.mark.parametrize("prefix", ["thp_eu1_", "tha_eu1_", f"thp_{LONGEST}_"])
@pytest.mark.parametrize("length", [12, RANDOM_LENGTH, 49])
def test_a_log_line_has_the_prefix_and_nothing_of_the_secret(prefix: str, length: int) -> None:
    secret = unknown_key(prefix).removeprefix(prefix)[:length]

    line = log.JsonFormatter().format(logging.makeLogRecord({"msg": f"Bearer {prefix}{secret}."}))

    assert f"Bearer {prefix}[redacted]." in line
    assert secret not in line


async def _answer(client: httpx2.AsyncClient, key: str) -> httpx2.Response:
    return await client.get("/v1/models", headers={"authorization": f"Bearer {key}"})


@pytest.mark.parametrize("cell", ["eu1", None])
async def test_an_unknown_key_of_another_cell_is_told_so(
    settings: Settings, cell: str | None
) -> None:
    here = replace(settings, keys=replace(settings.keys, cell=cell))
    async with running_gateway(here) as gateway, gateway.client() as client:
        elsewhere = await _answer(client, unknown_key("thp_us1_"))
        unknown = await _answer(client, unknown_key("thp_"))
        mistyped = await _answer(client, unknown_key("thp_us1_")[:-1])

    assert elsewhere.status_code == 401
    assert elsewhere.json()["error"]["code"] == "wrong_cell"
    assert "'us1'" in elsewhere.json()["error"]["message"]
    assert "eu1" not in elsewhere.text
    assert elsewhere.headers["www-authenticate"] == 'Bearer error="invalid_token"'
    assert unknown.json()["error"]["code"] == "invalid_api_key"
    assert mistyped.json()["error"]["code"] == "invalid_api_key"


async def test_keys_of_any_cell_work_where_they_are_stored(
    settings: Settings, database: Database, org: OrganizationFixture
) -> None:
    """An organization that moved brings keys along that name its former cell."""
    moved = await new_organization_fixture(database, cell="us1")
    named = await moved.project_key(await moved.project())
    plain = await org.project_key(await org.project())

    async with running_gateway(settings) as gateway, gateway.client() as client:
        answers = [await _answer(client, held.value) for held in (named, plain)]

    assert named.value.startswith("thp_us1_")
    assert plain.value.startswith("thp_")
    assert [answer.status_code for answer in answers] == [200, 200]
