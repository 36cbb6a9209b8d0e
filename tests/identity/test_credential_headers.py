"""How a key is sent: two headers for customers, one for Admin keys, and never in the body."""

from collections.abc import AsyncIterator
from itertools import chain

import pytest
import pytest_asyncio
from msgspec.structs import replace

from tests.identity.raw import Answer, Connection, bearer, connected
from tests.identity.table import ROWS, Row
from tests.support.credentials import PROJECT_PREFIX, malformed_keys, unknown_key
from tests.support.gateway import Gateway, running_gateway
from tests.support.organization_fixture import OrganizationFixture
from tollhouse.contract.operations import OPERATIONS, routes_of
from tollhouse.settings import Settings

pytestmark = pytest.mark.asyncio(loop_scope="module")

CUSTOMER_ROUTE = ("GET", "/v1/models")
ADMIN_ROUTE = ("GET", "/v1/organization/admin_api_keys")
LET_IN = 200

HUGE_BYTES = 10**12


@pytest_asyncio.fixture(loop_scope="module")
async def connection(gateway: Gateway) -> AsyncIterator[Connection]:
    async with connected(gateway.host, gateway.port) as opened:
        yield opened


@pytest_asyncio.fixture(loop_scope="module")
async def project_key(org: OrganizationFixture) -> str:
    return (await org.project_key(await org.project())).value


@pytest_asyncio.fixture(loop_scope="module")
async def admin_key(org: OrganizationFixture) -> str:
    return (await org.admin_key()).value


async def test_a_customer_key_passes_in_either_header(
    connection: Connection, project_key: str
) -> None:
    for header in (bearer(project_key), ("x-api-key", project_key), ("X-API-Key", project_key)):
        answer = await connection.ask(*CUSTOMER_ROUTE, [header])

        assert answer.status == LET_IN, header


async def test_the_same_key_in_both_headers_passes(
    connection: Connection, project_key: str
) -> None:
    answer = await connection.ask(
        *CUSTOMER_ROUTE, [bearer(project_key), ("x-api-key", project_key)]
    )

    assert answer.status == LET_IN


async def test_two_different_keys_are_refused_though_both_are_valid(
    connection: Connection, org: OrganizationFixture, project_key: str
) -> None:
    other = (await org.project_key(await org.project())).value
    pairs = [
        [bearer(project_key), ("x-api-key", other)],
        [bearer(project_key), bearer(other)],
        [("x-api-key", project_key), ("x-api-key", other)],
        [bearer(project_key), ("x-api-key", unknown_key(PROJECT_PREFIX))],
        [bearer(project_key), ("x-api-key", "")],
    ]
    for headers in pairs:
        answer = await connection.ask(*CUSTOMER_ROUTE, headers)

        _assert_invalid(answer)


async def test_organization_routes_do_not_read_the_customer_header(
    connection: Connection, org: OrganizationFixture, admin_key: str
) -> None:
    alone = await connection.ask(*ADMIN_ROUTE, [("x-api-key", admin_key)])
    beside = await connection.ask(
        *ADMIN_ROUTE, [bearer(admin_key), ("x-api-key", unknown_key(PROJECT_PREFIX))]
    )

    assert alone.status == 401
    assert alone.header("www-authenticate") == "Bearer"
    assert b'"missing_api_key"' in alone.body
    assert beside.status == 200


async def test_the_customer_header_has_the_name_that_the_settings_give_it(
    settings: Settings, project_key: str
) -> None:
    renamed = replace(settings, keys=replace(settings.keys, customer_header="X-Service-Key"))
    async with (
        running_gateway(renamed) as gateway,
        connected(gateway.host, gateway.port) as connection,
    ):
        passed = await connection.ask(*CUSTOMER_ROUTE, [("x-service-key", project_key)])
        unread = await connection.ask(*CUSTOMER_ROUTE, [("x-api-key", project_key)])

    assert passed.status == LET_IN
    assert unread.status == 401


@pytest.mark.parametrize("scheme", ["bearer", "BEARER", "bEaReR", "Bearer  "])
async def test_the_scheme_is_read_in_any_case(
    connection: Connection, admin_key: str, scheme: str
) -> None:
    answer = await connection.ask(*ADMIN_ROUTE, [("authorization", f"{scheme} {admin_key}")])

    assert answer.status == 200


@pytest.mark.parametrize(
    "value", ["{key}", "Bearer", "Bearer ", "Basic {key}", "Bearer{key}", "Bearer {key} {key}"]
)
async def test_an_authorization_that_is_no_bearer_key_is_invalid(
    connection: Connection, admin_key: str, value: str
) -> None:
    answer = await connection.ask(*ADMIN_ROUTE, [("authorization", value.format(key=admin_key))])

    _assert_invalid(answer)


async def test_every_kind_of_malformed_key_is_invalid(
    connection: Connection, project_key: str
) -> None:
    garbage = malformed_keys(PROJECT_PREFIX) | {
        "beyond ASCII": f"{project_key[:-1]}\xe9",
        "a key with a blank inside": f"{project_key[:20]} {project_key[20:]}",
        "a key in the wrong case": project_key.upper(),
    }
    for name, value in garbage.items():
        answer = await connection.ask(*CUSTOMER_ROUTE, [bearer(value)])

        assert answer.status == 401, name
        _assert_invalid(answer)


async def test_a_key_in_the_query_or_body_is_no_credential(
    connection: Connection, admin_key: str
) -> None:
    method, path = ADMIN_ROUTE
    answer = await connection.ask(method, f"{path}?api_key={admin_key}")

    assert answer.status == 401
    assert b'"missing_api_key"' in answer.body


async def test_head_answers_like_get_without_the_content(
    connection: Connection, admin_key: str
) -> None:
    _, path = ADMIN_ROUTE
    for headers in ([], [bearer(admin_key)]):
        get = await connection.ask("GET", path, headers)
        head = await connection.ask("HEAD", path, headers)

        assert head.status == get.status
        assert _comparable(head) == _comparable(get)
        assert head.body == b""


async def test_options_needs_no_key_and_tells_the_methods(connection: Connection) -> None:
    methods: dict[str, set[str]] = {}
    for method, path in chain.from_iterable(map(routes_of, OPERATIONS)):
        methods.setdefault(path, {"OPTIONS"}).add(method)
        if method == "GET":
            methods[path].add("HEAD")

    for path, allowed in methods.items():
        answer = await connection.ask("OPTIONS", path)

        assert answer.status == 204, path
        assert answer.header("allow") == ", ".join(sorted(allowed)), path


async def test_a_method_that_a_path_does_not_have_is_refused_before_the_key(
    connection: Connection, admin_key: str
) -> None:
    for headers in ([], [bearer(admin_key)]):
        answer = await connection.ask("PUT", ADMIN_ROUTE[1], headers)

        assert answer.status == 405
        assert answer.header("allow") == "GET, HEAD, OPTIONS"


@pytest.mark.parametrize("is_chunked", [False, True])
async def test_a_refusal_does_not_wait_for_the_body(
    gateway: Gateway, project_key: str, admin_key: str, is_chunked: bool
) -> None:
    """A terabyte is announced and not one byte of it is sent: who waited would answer 408."""
    announced = (
        ("transfer-encoding", "chunked") if is_chunked else ("content-length", str(HUGE_BYTES))
    )
    wrong = {"customer": admin_key, "admin": project_key}
    for row in ROWS:
        for headers, status in (([], 401), ([bearer(wrong[row.kind])], 403)):
            async with connected(gateway.host, gateway.port) as connection:
                answer = await connection.ask(row.method, _any(row), [*headers, announced])

            assert answer.status == status, row.id


def _any(row: Row) -> str:
    return row.path.replace("{", "").replace("}", "")


def _assert_invalid(answer: Answer) -> None:
    assert answer.status == 401
    assert answer.header("www-authenticate") == 'Bearer error="invalid_token"'
    assert b'"invalid_api_key"' in answer.body


def _comparable(answer: Answer) -> list[tuple[str, str]]:
    return [(name, value) for name, value in answer.headers if name not in {"date", "x-request-id"}]
