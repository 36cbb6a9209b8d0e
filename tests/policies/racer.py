"""A client in a process of its own, over one connection that stays open."""

import http.client
import json
from collections.abc import Mapping
from multiprocessing.connection import Connection

Request = tuple[str, str, Mapping[str, object]]
Answer = tuple[int, str | None, dict[str, object]]
"""Status, `x-should-retry`, body."""


def race(line: Connection, host: str, port: int, key: str) -> None:
    """Send every request that comes down the line at once, and tell its answer."""
    connection = http.client.HTTPConnection(host, port, timeout=60)
    connection.connect()
    line.send("ready")
    while True:
        line.send(_answer(connection, key, line.recv()))


def _answer(connection: http.client.HTTPConnection, key: str, request: Request) -> Answer:
    method, path, body = request
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    connection.request(method, path, json.dumps(body), headers)
    response = connection.getresponse()
    return response.status, response.getheader("x-should-retry"), json.loads(response.read())
