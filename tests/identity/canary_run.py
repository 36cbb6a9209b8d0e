"""A service that is told every secret it must not repeat, on every path that it can take.

`Run` keeps what was sent and what came back. A canary is a text that occurs nowhere else.
"""

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field

import httpx2

from tests.identity.creations import create, keys_path, managed_keys_path, rotate_path
from tests.identity.proxy import Proxy
from tests.identity.raw import connected
from tests.identity.waiting import until
from tests.support.credentials import ADMIN_PREFIX, PROJECT_PREFIX, unknown_key
from tests.support.organization_fixture import OrganizationFixture
from tests.support.processes import Service

LIST = "/v1/organization/admin_api_keys"
PROJECTS = "/manage/v1/organization/projects"
ADMIN_KEYS = "/manage/v1/organization/admin_api_keys"
BODY_BYTES_MAX = 8192
HEADER_BYTES_MAX = 16_384


def canary() -> str:
    return f"canary{secrets.token_hex(20)}"


@dataclass
class Run:
    """`secrets` may be found nowhere; `sent` nowhere but in the database and in its own answer."""

    service: Service
    org: OrganizationFixture
    client: httpx2.AsyncClient
    secrets: dict[str, str] = field(default_factory=dict[str, str])
    sent: dict[str, str] = field(default_factory=dict[str, str])
    failures: list[httpx2.Response] = field(default_factory=list[httpx2.Response])

    def secret(self, name: str, value: str | None = None) -> str:
        """A new secret. Of a key, the part that is never shown, so that a cut one is found too."""
        told = value or canary()
        is_key = told.startswith((PROJECT_PREFIX, ADMIN_PREFIX))
        self.secrets[name] = told[8:-4] if is_key else told
        return told

    def note(self, answer: httpx2.Response) -> httpx2.Response:
        if answer.status_code >= 400:
            self.failures.append(answer)
        return answer

    async def ask(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str] | None = None,
        content: str | None = None,
    ) -> httpx2.Response:
        """A request with a JSON body and an idempotency key that is a secret of its own."""
        own = {"idempotency-key": canary(), "content-type": "application/json"}
        sent = own | dict(headers or {})
        return self.note(await self.client.request(method, path, headers=sent, content=content))


def _named(name: str) -> str:
    return json.dumps({"name": name})


async def succeed(run: Run) -> None:
    """Keys are made, replayed, rotated, used and ended."""
    project = await run.org.project()
    path = keys_path(project.id)
    run.sent["idempotency key"] = canary()
    made = await create(run.client, path, run.sent["idempotency key"])
    await create(run.client, path, run.sent["idempotency key"])
    value = run.secret("created key", made.json()["value"])
    rotated = await create(
        run.client, rotate_path(project.id, made.json()["id"]), canary(), {"overlap_seconds": 60}
    )
    run.secret("rotated key", rotated.json()["value"])
    admin = await create(run.client, ADMIN_KEYS, canary(), {"name": "an Admin key"})
    run.secret("created Admin key", admin.json()["value"])
    for header in ({"authorization": f"Bearer {value}"}, {"authorization": "", "x-api-key": value}):
        await run.ask("GET", "/v1/models", header)
    for verb in ("suspend", "resume", "revoke"):
        await run.client.post(f"{managed_keys_path(project.id)}/{made.json()['id']}/{verb}")
    await run.client.delete(f"{LIST}/{admin.json()['id']}")
    for path in (LIST, PROJECTS, managed_keys_path(project.id), "/manage/v1/organization/audit"):
        assert (await run.client.get(path)).status_code == 200


async def fail_at_the_door(run: Run) -> None:
    """401, 403, 404 and 405, with secrets wherever a client could put them."""
    bad = {
        "unknown key": run.secret("unknown key", unknown_key(ADMIN_PREFIX)),
        "malformed key": run.secret("malformed key", unknown_key(ADMIN_PREFIX)[:-1] + "~"),
        "garbage": run.secret("bearer garbage"),
    }
    for value in bad.values():
        await run.ask("GET", LIST, {"authorization": f"Bearer {value}"})
    await run.ask("GET", LIST, {"authorization": f"Basic {run.secret('basic credentials')}"})
    await run.ask("GET", LIST, {"authorization": run.secret("bare authorization")})
    await run.ask("GET", "/v1/models", {"x-api-key": run.secret("x-api-key")})
    project_key = await run.org.project_key(await run.org.project())
    value = run.secret("project key", project_key.value)
    await run.ask("GET", LIST, {"authorization": f"Bearer {value}"})
    narrow = await run.org.admin_key(("billing:read",))
    value = run.secret("narrow Admin key", narrow.value)
    await run.ask("GET", LIST, {"authorization": f"Bearer {value}"})
    for name in ("cookie", "user-agent", "x-request-id", "traceparent", "x-forwarded-for"):
        await run.ask("GET", f"/v1/{run.secret('path')}", {name: run.secret(name)})
    key = run.secret("key as client request ID", unknown_key(PROJECT_PREFIX))
    await run.ask("GET", LIST, {"x-client-request-id": f"trace {key}", "authorization": ""})
    await run.ask("GET", f"/v1/models/{run.secret('key in path', unknown_key(PROJECT_PREFIX))}")
    await run.ask("PUT", f"{LIST}?key={run.secret('key in query', unknown_key(PROJECT_PREFIX))}")


async def fail_on_the_body(run: Run) -> None:
    """400, 404, 409, 413 and 415: what was refused is not kept."""
    bodies = {
        "unknown field": '{"name": "x", "secret": "SECRET"}',
        "wrong type": '{"name": ["SECRET"]}',
        "unfinished JSON": '{"name": "SECRET',
        "repeated member": '{"name": "SECRET", "name": "x"}',
        "no object": '"SECRET"',
        "over-long name": '{"name": "SECRET' + 300 * "x" + '"}',
        "control character": '{"name": "SECRET\\u0001"}',
        "NUL": '{"name": "SECRET\\u0000"}',
        "too large": '{"name": "SECRET' + BODY_BYTES_MAX * "x" + '"}',
    }
    for name, body in bodies.items():
        await run.ask("POST", PROJECTS, content=body.replace("SECRET", run.secret(name)))
    run.sent["name of an unknown field"] = canary()
    unknown = json.dumps({run.sent["name of an unknown field"]: 1})
    await run.ask("POST", PROJECTS, content=unknown)
    text = {"content-type": f"text/{run.secret('media type')}"}
    await run.ask("POST", PROJECTS, text, run.secret("body of another type"))
    await run.ask("POST", PROJECTS, {"idempotency-key": run.secret("long key") + 200 * "x"}, "{}")
    project = await run.org.project()
    await run.org.archive(project)
    named = {"idempotency-key": run.secret("key of a refused creation")}
    refused = _named(run.secret("name of a refused key"))
    await run.ask("POST", keys_path(project.id), named, refused)
    await run.ask("POST", keys_path(project.id).replace("0", "1"), content=refused)
    reused = {"idempotency-key": canary()}
    await run.ask("POST", PROJECTS, reused, '{"name": "first"}')
    await run.ask("POST", PROJECTS, reused, _named(run.secret("name of a reuse")))


async def fail_on_the_wire(run: Run) -> None:
    """What is not HTTP, does not fit, or never ends."""
    admin = await run.org.admin_key()
    value = run.secret("key of a broken request", admin.value)
    head = f"authorization: Bearer {value}\r\nhost: gateway\r\n"
    broken = {
        "bad header": f"GET / HTTP/1.1\r\n{head}bad header: {run.secret('bad header')}\r\n\r\n",
        "bad method": f"{run.secret('bad method')} {LIST} HTTP/1.1\r\n{head}\r\n",
        "large head": f"GET {LIST} HTTP/1.1\r\n{head}x: {run.secret('large head') * 500}\r\n\r\n",
        "stalled body": (
            f"POST {PROJECTS} HTTP/1.1\r\n{head}idempotency-key: 12345678\r\n"
            f"content-type: application/json\r\ncontent-length: 500\r\n\r\n"
            f'{{"name": "{run.secret("stalled body")}"'
        ),
    }
    for request in broken.values():
        async with connected(*run.service.address) as connection:
            connection.writer.write(request.encode())
            answer = await connection.answer()
        run.note(httpx2.Response(answer.status, headers=answer.headers, content=answer.body))


async def fail_without_database(run: Run, proxy: Proxy) -> None:
    """503 in the middle of everything, with what the driver has to say in the log."""
    await proxy.cut()
    body = _named(run.secret("name during an outage"))

    async def is_refused() -> bool:
        return (await run.ask("POST", PROJECTS, content=body)).status_code == 503

    async def is_logged() -> bool:
        return "task_failed" in run.service.log()

    async def is_served() -> bool:
        return (await run.client.get(LIST)).status_code == 200

    await until(is_refused)
    value = run.secret("key during an outage", unknown_key(ADMIN_PREFIX))
    await run.ask("GET", LIST, {"authorization": f"Bearer {value}"})
    await until(is_logged)
    await proxy.open()
    await until(is_served)
