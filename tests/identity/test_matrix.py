"""Every operation against every kind of credential; what each cell must be is stated here."""

import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass

import httpx2
import pytest
import pytest_asyncio

from tests.identity.stage import Stage, path_of, set_stage
from tests.identity.table import BODIES, QUERIES, ROWS, Row
from tests.support.gateway import Gateway
from tollhouse.storage.database import Database

pytestmark = pytest.mark.asyncio(loop_scope="module")

MESSAGES_TYPES = {401: "authentication_error", 403: "permission_error", 503: "overloaded_error"}
OPENAI_TYPES = {503: "service_unavailable_error"}


@dataclass(frozen=True)
class Expected:
    status: int
    code: str | None = None
    challenge: str | None = None


_INVALID = Expected(401, "invalid_api_key", 'Bearer error="invalid_token"')
ALWAYS = {
    "none": Expected(401, "missing_api_key", "Bearer"),
    "malformed": _INVALID,
    "unknown": _INVALID,
    "revoked": _INVALID,
    "expired": _INVALID,
    "closed organization": _INVALID,
    "wrong kind and revoked": _INVALID,
    "wrong kind": Expected(403, "wrong_key_type"),
    "suspended organization": Expected(403, "organization_suspended"),
}
"""Credentials that every operation answers alike."""

UNJUDGED = Expected(503, "no_judge")
"""This gateway has nobody to ask."""

CREDENTIALS = (
    *ALWAYS,
    "suspended key",
    "key of an archived project",
    "without the permission",
    "only the permission",
    "foreign",
    "right",
)


def expected(row: Row, credential: str) -> Expected:
    """The cell of the matrix."""
    if credential in ALWAYS:
        return ALWAYS[credential]
    if credential == "without the permission":
        scope = f'Bearer error="insufficient_scope", scope="{row.permission}"'
        return Expected(403, "insufficient_permissions", scope)
    if credential in {"suspended key", "key of an archived project"}:
        return _stopped(row, credential)
    if row.needs_model:
        return Expected(400, "missing_required_parameter")
    if credential == "foreign":
        return _foreign(row)
    return _sound(row)


def _stopped(row: Row, credential: str) -> Expected:
    """Only project keys can be suspended or lose their project."""
    if row.kind == "admin":
        return Expected(403, "wrong_key_type")
    if credential == "suspended key":
        return Expected(403, "key_suspended")
    return Expected(200) if row.survives_archive else Expected(403, "project_archived")


def _foreign(row: Row) -> Expected:
    if "{project_id}" in row.path:
        return Expected(404, "project_not_found")
    if "{api_key_id}" in row.path:
        return Expected(404, "api_key_not_found")
    if "{policy_id}" in row.path:
        return Expected(404, "policy_not_found")
    if "{alert_subscription_id}" in row.path:
        return Expected(404, "alert_subscription_not_found")
    if "{request_id}" in row.path:
        return Expected(404, "request_not_found")
    return _sound(row)


def _sound(row: Row) -> Expected:
    return UNJUDGED if row.id in {"testPolicy", "testUnsavedRule"} else Expected(200)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def stage(gateway: Gateway, database: Database) -> Stage:
    return await set_stage(gateway, database)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def client(stage: Stage) -> AsyncIterator[httpx2.AsyncClient]:
    async with stage.gateway.client() as opened:
        yield opened


async def _ask(
    client: httpx2.AsyncClient, row: Row, path: str, headers: dict[str, str]
) -> httpx2.Response:
    default: dict[str, object] | None = None if row.method == "GET" or not row.needs_model else {}
    return await client.request(
        row.method,
        path,
        headers={"Idempotency-Key": secrets.token_hex(8), **headers},
        params=QUERIES.get(row.id),
        json=BODIES.get(row.id, default),
    )


@pytest.mark.guarantee("T12")
async def test_the_matrix_has_140_cells_or_more() -> None:
    assert len(set(CREDENTIALS)) >= 10
    assert len({row.id for row in ROWS}) * len(set(CREDENTIALS)) >= 140


@pytest.mark.guarantee("T12")
@pytest.mark.parametrize("credential", CREDENTIALS)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
async def test_a_cell_of_the_matrix(
    stage: Stage, client: httpx2.AsyncClient, row: Row, credential: str
) -> None:
    cell = expected(row, credential)
    targets = await stage.fresh_targets(row.id) if cell.status == 200 else stage.targets
    if row.id == "clearSpendingLimit" and cell.status == 200:
        await stage.set_caps()
    if row.id == "clearRateLimit" and cell.status == 200:
        await stage.set_limits()
    key = stage.key(credential, row)
    headers = {} if key is None else {"authorization": f"Bearer {key}"}
    rows_before = await stage.audit_rows()

    answer = await _ask(client, row, path_of(row, targets), headers)

    assert answer.status_code == cell.status, answer.text
    assert answer.headers.get("www-authenticate") == cell.challenge
    if cell.code is not None:
        assert answer.json()["error"]["code"] == cell.code
        assert answer.json()["error"]["type"] == _error_type(row, cell.status)
        assert await stage.audit_rows() == rows_before, "a refusal changes nothing"


def _error_type(row: Row, status: int) -> str:
    types = MESSAGES_TYPES if "/messages" in row.path or "/anthropic/" in row.path else OPENAI_TYPES
    return types.get(status, "invalid_request_error")


@pytest.mark.guarantee("T12")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
async def test_every_unusable_key_gets_the_same_answer(
    stage: Stage, client: httpx2.AsyncClient, row: Row
) -> None:
    """Nothing tells a revoked key from one that never was."""
    answers = set[tuple[str, ...]]()
    for credential in [name for name, cell in ALWAYS.items() if cell is _INVALID]:
        headers = {"authorization": f"Bearer {stage.key(credential, row)}"}
        answer = await _ask(client, row, path_of(row, stage.targets), headers)
        request_id = answer.headers["x-request-id"]
        shown = answer.text.replace(request_id, "")
        names = (f"{name}: {value}" for name, value in answer.headers.items())
        kept = (line for line in names if request_id not in line and not line.startswith("date"))
        answers.add((shown, *kept))

    assert len(answers) == 1
