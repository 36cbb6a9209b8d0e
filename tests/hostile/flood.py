"""Many connections that send Admin requests without a pause, from a process of their own."""

import asyncio
import json
import uuid
from collections import Counter
from multiprocessing.connection import Connection

from tests.hostile.clients import request_bytes
from tests.serving.raw import parse

WAIT_SECONDS_MAX = 30.0


def admin_request(kind: str, key: str) -> bytes:
    """Return a request of one of the kinds that cost the database most."""
    match kind:
        case "reports":
            query = "start_time=0&limit=180&group_by=project_id,api_key_id,line_item"
            return request_bytes(f"/v1/organization/costs?{query}", key, b"", method="GET")
        case "limits":
            body = json.dumps(
                {"period": "month", "limit": {"value": str(uuid.uuid4().int % 10**6)}}
            )
            path = "/manage/v1/organization/spending_limits"
            return request_bytes(path, key, body.encode(), method="PUT")
        case _:
            headers = [f"idempotency-key: flood-{uuid.uuid4().hex}"]
            path = "/manage/v1/organization/projects"
            return request_bytes(path, key, b'{"name":"flood"}', headers=headers)


def flood(line: Connection, address: tuple[str, int], connections: int) -> None:
    """For every key with kinds that comes in: flood until a word comes, and tell the statuses."""
    while True:
        key, kinds = line.recv()
        line.send(asyncio.run(_flood(line, address, key, kinds, connections)))


async def _flood(
    line: Connection, address: tuple[str, int], key: str, kinds: tuple[str, ...], connections: int
) -> dict[str, int]:
    statuses: Counter[str] = Counter()
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_reader(line.fileno(), stopped.set)
    await asyncio.gather(
        *(
            _hammer(address, key, kinds[number % len(kinds)], stopped, statuses)
            for number in range(connections)
        )
    )
    line.recv()
    return dict(statuses)


async def _hammer(
    address: tuple[str, int],
    key: str,
    kind: str,
    stopped: asyncio.Event,
    statuses: Counter[str],
) -> None:
    while not stopped.is_set():
        reader, writer = await asyncio.open_connection(*address)
        try:
            while not stopped.is_set():
                writer.write(admin_request(kind, key))
                status, closes = await _answer(reader)
                statuses[status] += 1
                if closes:
                    break
        except (OSError, EOFError, TimeoutError):
            statuses["broken"] += 1
        finally:
            writer.close()


async def _answer(reader: asyncio.StreamReader) -> tuple[str, bool]:
    """Return the status, and whether the server closes; a refusal without a hint is told apart."""
    received = b""
    async with asyncio.timeout(WAIT_SECONDS_MAX):
        while True:
            data = await reader.read(65_536)
            if not data:
                raise EOFError
            received += data
            responses, _ = parse(received)
            if responses:
                break
    response = responses[0]
    status = str(response.status)
    if response.status in (429, 503) and "retry-after" not in response.headers:
        status += " without retry-after"
    return status, response.headers.get("connection") == "close"
