"""The corpus through nginx with the reference configuration: what both read must be the same."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from bench.support import nginx
from tests.cli.commands import free_port
from tests.serving.corpus import CASES, Case, run_case
from tests.serving.raw import Observation
from tests.serving.servers import supervised
from tests.serving.test_corpus import BOUNDS
from tests.support.edges import certificate, fitted

CONNECTIONS_MAX = 12
REFUSED_BY_NGINX = {501, 505}
IMPATIENT = "client_header_timeout 1s; client_body_timeout 1s; lingering_timeout 1s;\n"


@pytest.mark.guarantee("T23")
async def test_no_case_is_answered_twice_or_smuggled_behind_nginx(tmp_path: Path) -> None:
    certificate(tmp_path)
    room, port = asyncio.Semaphore(CONNECTIONS_MAX), free_port()
    (tmp_path / "server").mkdir()
    (tmp_path / "moved").mkdir()

    async def observe(case: Case) -> Observation:
        async with room:
            return await run_case(("127.0.0.1", port), case)

    async with supervised(tmp_path / "server", BOUNDS) as server:
        text = fitted(
            "nginx.conf",
            ("server 127.0.0.1:8080;", f"server 127.0.0.1:{server.address[1]};"),
            ("listen 8443 ssl;", f"listen 127.0.0.1:{port};"),
            ("/etc/tollhouse/tls/", f"{tmp_path}/"),
            ("/etc/tollhouse/moved-keys/", f"{tmp_path}/moved/"),
        )
        async with nginx.running(tmp_path / "nginx", IMPATIENT + text):
            seen = dict(zip(CASES, await asyncio.gather(*map(observe, CASES)), strict=True))
        processed = (await server.get("/processed")).responses[0].json()["processed"]

    for case, observation in seen.items():
        _check(case, observation)
    # nginx answers HTTP/0.9 by itself, which has no status line.
    answered = sum(each.statuses.count(200) + bool(each.leftover) for each in seen.values())
    assert processed == answered


def _check(case: Case, seen: Observation) -> None:
    reports: list[dict[str, Any]] = [each.json() for each in seen.responses if each.status == 200]

    assert len(reports) <= max(1, b"".join(case.segments).count(b" /echo ")), case.name
    assert all(report["path"] != "/smuggled" for report in reports), case.name
    assert all(status < 500 or status in REFUSED_BY_NGINX for status in seen.statuses), case.name
    if case.bounded.count(200) == len(reports):
        assert [report["received"] for report in reports] == list(case.sizes[: len(reports)])
