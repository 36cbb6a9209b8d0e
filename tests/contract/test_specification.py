"""Every line of the specification's tables against the document, and against a live server."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.contract import document_lines, live_lines
from tests.contract.document_lines import Json
from tests.contract.kinds import Row
from tests.contract.live_answers import collect
from tests.contract.live_lines import Server
from tests.contract.tables import ANSWERS, PARAMETERS, REQUESTS, Parameters, Resource
from tests.support.deployment import MODEL, Deployment, model, offering
from tests.support.policies import new_policy
from tests.support.shared_deployment import deployment, gateway, upstream
from tests.support.shared_gateway import database, database_url, settings
from tests.upstream.upstream import ScriptedUpstream
from tollhouse.base.ids import policy_id_text
from tollhouse.settings import Settings

__all__ = ["database", "database_url", "deployment", "gateway", "settings", "upstream"]

pytestmark = pytest.mark.asyncio(loop_scope="module")

DOCUMENT: Json = json.loads(
    (Path(__file__).parents[2] / "docs" / "openapi.json").read_text(encoding="utf-8")
)

Line = tuple[Resource | Parameters, Row | None]
"""A table and one of its lines, or the table as a whole."""


NEVER_SAID = {
    ("CompletionMessage", "name"),
    ("CompletionMessage", "tool_call_id"),
    ("ProjectKey", "last_used_at"),
    ("ProjectKey", "expires_at"),
    ("AdminKey", "last_used_at"),
    ("ErrorBody", "doc_url"),
}
"""Fields without a value in every answer here: no assistant has a name, no new key was used."""


@pytest.fixture(scope="module")
def offered(settings: Settings, upstream: ScriptedUpstream) -> Settings:
    """A model with everything, so large and cheap that no bound of the tables is beyond it."""
    whole = model(
        pricing={"prompt": "0.000000001", "completion": "0.000000001"},
        context_length=2_000_000,
        max_output_length=1_000_000,
        input_modalities=["text", "image", "audio"],
        output_modalities=["text", "audio"],
        parent="example/base",
    )
    return offering(settings, upstream.base_url, models={MODEL: whole})


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def server(deployment: Deployment) -> AsyncIterator[Server]:
    """One customer and one administrator for all lines, and one answer of every kind."""
    policy = await new_policy(deployment.org, ["publish"])
    ids = {
        "model": MODEL,
        "policy_id": policy_id_text(policy.id),
        "project_id": str(deployment.project.id),
    }
    async with deployment.customer() as customer, deployment.administrator() as administrator:
        made = Server(document=DOCUMENT, customer=customer, administrator=administrator, ids=ids)
        await collect(made, deployment)
        yield made


def lines() -> list[Any]:
    """Every table as a whole, and each of its lines."""
    return [
        pytest.param((table, line), id=f"{name_of(table)}-{line.name if line else 'table'}")
        for table in (*REQUESTS, *ANSWERS, *PARAMETERS)
        for line in (None, *table.rows)
    ]


def name_of(table: Resource | Parameters) -> str:
    if isinstance(table, Resource):
        return table.schema
    return f"{table.method} {table.path} {table.place}"


@pytest.mark.parametrize("line", lines())
async def test_the_document_says_what_the_line_says(line: Line) -> None:
    match line:
        case Resource() as table, None:
            document_lines.check_schema(DOCUMENT, table)
        case Resource() as table, Row() as row:
            document_lines.check_field(DOCUMENT, table, row)
        case Parameters() as table, None:
            document_lines.check_parameters(DOCUMENT, table)
        case Parameters() as table, Row() as row:
            document_lines.check_parameter(DOCUMENT, table, row)
        case _:
            raise AssertionError(line)


@pytest.mark.parametrize("line", lines())
async def test_the_server_does_what_the_line_says(server: Server, line: Line) -> None:
    match line:
        case Parameters() as table, Row() as row:
            await live_lines.check_parameter(server, table, row)
        case Resource() as table, row if table in REQUESTS:
            await live_lines.check_body(server, table, row)
        case Resource() as table, row:
            found = live_lines.check_answers(server, table, row)
            assert found or row is None or (table.schema, row.name) in NEVER_SAID
        case _:
            pass
