"""An administrator who uses every operation of administration under `/v1`, again and again."""

import asyncio
import itertools
import time
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, Final

import aiohttp

from tests.hostile.customers import Customer

PAUSE_SECONDS: Final = 0.2
CYCLES_PER_ORGANIZATION: Final = 100
"""A policy cannot be deleted, and an organization may have a thousand."""
RULE: Final = 'Does it say "forbidden"?'


class Administrator:
    """Creates, reads, changes and ends a project, keys and a policy; reads costs and models."""

    def __init__(
        self, session: aiohttp.ClientSession, new_customer: Callable[[], Awaitable[Customer]]
    ) -> None:
        self._session = session
        self._new_customer = new_customer
        self._customer: Customer
        self.statuses: Counter[str] = Counter()
        self.cycles = 0

    async def run(self) -> None:
        """Run until cancelled."""
        for cycle in itertools.count():
            if cycle % CYCLES_PER_ORGANIZATION == 0:
                self._customer = await self._new_customer()
            try:
                await self._cycle()
                self.cycles += 1
            except (aiohttp.ClientError, TimeoutError):
                # An operation failed, such as while a server is away: begin anew.
                continue

    async def _cycle(self) -> None:
        project = f"organization/projects/{await self._made('/manage/v1/organization/projects')}"
        await self._made(f"/v1/{project}/api_keys")
        policy = await self._call(
            "POST", "/v1/organization/policies", {"name": "A policy", "rule": RULE}
        )
        path = f"organization/policies/{policy['id']}"
        await self._call("GET", f"/v1/{path}")
        body = {"revision": policy["revision"], "description": "Changed."}
        edited = await self._call("PATCH", f"/v1/{path}", body)
        published = await self._call(
            "POST", f"/manage/v1/{path}/publish", {"revision": edited["revision"]}
        )
        await self._call("GET", f"/v1/{project}/effective_policies")
        await self._call("POST", f"/v1/{path}/pause", {"revision": published["revision"]})
        admin_key = await self._made("/manage/v1/organization/admin_api_keys")
        await self._call("GET", "/v1/organization/admin_api_keys")
        await self._call("DELETE", f"/v1/organization/admin_api_keys/{admin_key}")
        await self._call("GET", f"/v1/organization/costs?start_time={int(time.time()) - 86_400}")
        await self._call("POST", f"/v1/{project}/archive")

    async def _made(self, path: str) -> str:
        return (await self._call("POST", path, {"name": "Made in a long run"}))["id"]

    async def _call(
        self, method: str, path: str, body: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        headers = {
            "authorization": f"Bearer {self._customer.admin_key}",
            "idempotency-key": uuid.uuid4().hex,
        }
        await asyncio.sleep(PAUSE_SECONDS)
        async with self._session.request(method, path, json=body, headers=headers) as answer:
            self.statuses[str(answer.status)] += 1
            answer.raise_for_status()
            return await answer.json()
