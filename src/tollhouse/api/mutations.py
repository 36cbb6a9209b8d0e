"""The one way in which a handler changes something."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from tollhouse.api.call import Call
from tollhouse.keys import service as keys
from tollhouse.keys.types import Admin
from tollhouse.storage.database import Actor, Authority, Mutation


@asynccontextmanager
async def mutation(call: Call[Admin, Any, Any]) -> AsyncGenerator[Mutation]:
    """Change the caller's organization, if its key may still do so.

    At the door an answer of the directory is believed for a moment, and a body may take its
    time to arrive. What is written must not rest on that: the key is read again, and held, so
    that nothing commits after its revocation.
    """
    async with call.house.database.mutation(_authority(call)) as tx:
        await keys.require_working_admin_key(
            tx, call.caller.key_id, permission=call.permission, now=call.house.clock.now()
        )
        yield tx


def _authority(call: Call[Admin, Any, Any]) -> Authority:
    return Authority(
        organization_id=call.organization_id,
        actor=Actor(type="admin_api_key", id=str(call.caller.key_id)),
        request_id=call.request_id,
        now=call.now,
    )
