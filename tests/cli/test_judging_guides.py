"""The guides to a judge and from monitoring to enforcing, followed to their ends."""

import asyncio
import re
from contextlib import AbstractContextManager
from typing import Any

import httpx2
import pytest

from tests.cli.commands import SECONDS_MAX, Operator, Server, free_port
from tests.cli.documents import read, scripts
from tests.cli.engines import offered, running
from tests.cli.test_readme import json_documents
from tests.identity.waiting import until
from tests.support.judge import P_NO, P_YES, ReceivedQuestion, ScriptedJudge

RULE = "Does the text name a person?"


def finds_person(question: ReceivedQuestion) -> float:
    return P_YES if re.search("Mary|John", question.content) else P_NO


def prepare(reader: Operator) -> str:
    """An organization with credit, keys and a draft; yields the value of the project key."""
    reader.environment["TOLLHOUSE_SERVER__PORT"] = port = str(free_port())
    reader.environment["TOLLHOUSE_URL"] = f"http://127.0.0.1:{port}"
    reader.json("org", "create", "Example Ltd")
    reader.json("credits", "grant", "5", "--reason", "a trial")
    project = reader.json("project", "create", "Bakery")["id"]
    may = ("--permission", "policies:read", "--permission", "policies:write")
    admin = reader.created("admin-key", "create", "An admin", *may)
    reader.environment["TOLLHOUSE_ADMIN_KEY"] = admin["value"]
    policy = reader.json(
        *("policy", "create", "No names", "--rule", RULE),
        *("--scope", "organization", "--direction", "request"),
    )
    reader.environment["POLICY_ID"] = policy["id"]
    return reader.created("key", "create", "A key", "--project", project)["value"]


def engine(reader: Operator) -> AbstractContextManager[str]:
    return running(reader, "test-upstream", "--port", "0", "--json")


def offer(reader: Operator, announced: str) -> str:
    """Write the engine into the configuration; its model is what callers ask for."""
    _, backend, _ = offered(announced)
    name = "example/guide"
    with reader.settings_path.open("a", encoding="utf-8") as file:
        file.write(
            f'\n[backends.guide]\nreplicas = ["{backend.replicas[0]}"]\n'
            f'[models."{name}"]\nbackend = "guide"\ncontext_length = 8192\n'
            'max_output_length = 64\ntokenizer = "bytes"\n'
            'pricing = { prompt = "0.000001", completion = "0.000002" }\n'
        )
    return name


async def say(reader: Operator, key: str, model: str, text: str) -> httpx2.Response:
    async with httpx2.AsyncClient(trust_env=False, timeout=SECONDS_MAX) as client:
        return await client.post(
            f"{reader.environment['TOLLHOUSE_URL']}/v1/chat/completions",
            headers={"authorization": f"Bearer {key}"},
            json={"model": model, "messages": [{"role": "user", "content": text}]},
        )


async def bash(reader: Operator, script: str) -> Any:  # noqa: ANN401 - what it printed
    return await asyncio.to_thread(reader.bash, script)


@pytest.mark.nightly
async def test_a_question_is_tried_watched_and_put_in_force(
    patient: Operator, judge: ScriptedJudge
) -> None:
    guide = scripts(read("docs/guides/monitoring-to-enforcing.md"))
    trial, over_http, calibrate, backtest, watch, look, other, enforce, early, *ends = guide
    doctor, reload = scripts(read("docs/guides/judging.md"))
    judge.answers = finds_person
    key = await asyncio.to_thread(prepare, patient)

    with engine(patient) as announced:
        model = await asyncio.to_thread(offer, patient, announced)
        assert "failure" not in (await bash(patient, doctor)).stdout
        with patient.serving() as server:
            assert reload == 'kill -HUP "$TOLLHOUSE_PID"\n'
            assert "match" in (await bash(patient, trial)).stdout
            (tried,) = json_documents((await bash(patient, over_http)).stdout)
            assert [verdict["outcome"] for verdict in tried["data"]] == ["match"]
            assert "30" in (await bash(patient, calibrate)).stdout
            assert (patient.directory / "curve.png").stat().st_size > 0
            assert "texts" in (await bash(patient, backtest)).stdout
            await bash(patient, watch)
            await watched(patient, key, model, look)
            assert re.search("^6000 +1", (await bash(patient, other)).stdout, re.MULTILINE)
            await bash(patient, enforce)
            await enforced(patient, server, key, model)
            assert re.search("ends_answer_early +yes", (await bash(patient, early)).stdout)
            stop, back = ends
            assert "paused" in (await bash(patient, stop)).stdout
            assert re.search("^state +monitoring", (await bash(patient, back)).stdout, re.MULTILINE)


async def watched(reader: Operator, key: str, model: str, look: str) -> None:
    """Both pass, and both are in the figures; the publication is felt within a second."""

    async def looked() -> tuple[list[str], int]:
        """What was done about matches, and how many contents did not match."""
        decisions, days = json_documents((await bash(reader, look)).stdout)
        no_matches = sum(day["no_matches"] for day in days["data"])
        return [one["action"] for one in decisions["data"]], no_matches

    async def is_watched() -> bool:
        assert (await say(reader, key, model, "The bridge is closed.")).status_code == 200
        return (await looked())[1] > 0

    async def is_found() -> bool:
        return (await looked())[0] == ["would_block"]

    await until(is_watched)
    assert (await say(reader, key, model, "Call Mary.")).status_code == 200
    await until(is_found)


async def enforced(reader: Operator, server: Server, key: str, model: str) -> None:
    """So is this one."""

    async def is_refused() -> bool:
        return (await say(reader, key, model, "Call Mary.")).status_code == 403

    await until(is_refused)
    assert (await say(reader, key, model, "The bridge is closed.")).status_code == 200
    assert server.process.poll() is None
