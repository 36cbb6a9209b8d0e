"""Sends the cases to one gateway in this process, and reads what all sides saw of each."""

import asyncio
import re
import time
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final

import httpx2
import msgspec

from tests.corpus.cases import CASES, GUARDS, LEFT_AT, ROUTES, TOKENS, Case
from tests.corpus.normal import Normal
from tests.corpus.oddities import FORMS
from tests.support.deployment import (
    EVERYTHING,
    MESSAGES_MODEL,
    TAKES,
    Deployment,
    customer_of,
    model,
)
from tests.support.gateway import Gateway, running_gateway, settings_for
from tests.support.judge import Fault, ScriptedJudge, running_judge
from tests.support.judged_deployment import judged_by
from tests.support.organization_fixture import new_organization_fixture
from tests.support.upstream import running_upstream
from tests.upstream.exchanges import RecordedExchange
from tests.upstream.scripts import UpstreamScript
from tests.upstream.upstream import ScriptedUpstream
from tollhouse.app import connect
from tollhouse.settings import Settings

LANES: Final = 4
"""Customers who send at the same time, each one case after the other."""
ENTRIES: Final = """
    SELECT reservation_id, phase, kind, project_id, model, held_pico, posted_pico, excess_pico,
           unknown_pico, input_tokens, cached_input_tokens, cache_write_tokens, output_tokens,
           images, input_pico, cached_input_pico, cache_write_pico, output_pico, image_pico,
           request_pico, delivered_tokens, is_estimated, operator_pays, bills_without_answer
      FROM ledger_entries
     WHERE organization_id = $1
     ORDER BY reservation_id, phase
"""
RECORDED: Final = "SELECT request_id FROM requests WHERE organization_id = $1 ORDER BY request_id"
LINE_ITEMS: Final = {
    "input_pico": "input",
    "cached_input_pico": "cached input",
    "cache_write_pico": "cache write",
    "output_pico": "output",
    "image_pico": "image",
    "request_pico": "request",
}
SENT_AGAIN: Final = {"no-head", "reset"}
"""Faults after which a call is sent again if its connection was a kept one, as chance has it."""
HEADERS_LEFT_OUT: Final = {"date", "content-length", "host", "connection", "transfer-encoding"}
PRICES: Final = {
    "prompt": "0.000001",
    "completion": "0.000002",
    "input_cache_read": "0.00000025",
    "input_cache_write": "0.00000125",
}
SPARE_PRICES: Final = {"prompt": "0.000003", "completion": "0.000006"}
_WORD: Final = re.compile(rb"w[0-9a-f]{8}")

Parts = dict[str, Any]


@dataclass
class Engines:
    """The upstreams behind all backends; `spare` answers for fallbacks, and never fails."""

    primary: ScriptedUpstream
    twin: ScriptedUpstream
    spare: ScriptedUpstream

    def seen_of(self, case: Case) -> list[RecordedExchange]:
        word = case.word.encode()
        return [each for each in self.primary.seen if word in each.body]

    def settings(self, settings: Settings, cases: Iterable[Case]) -> Settings:
        """Return the settings with the backends and models of all routes."""
        anthropic = {"dialect": "anthropic", "api_key": "sk-engine"}
        azure = {"dialect": "azure", "api_version": "2024-10-21", "api_key": "sk-azure"}
        first, spare = [self.primary.base_url], [self.spare.base_url]
        counts = {"counts_tokens_by": "messages"}
        backends: Parts = {
            "openai": {"replicas": first, "takes": TAKES, "api_key": "sk-openai", **counts},
            "anthropic": {"replicas": first, **anthropic, **counts},
            "azure": {"replicas": [self.primary.origin], **azure},
            "pair": {"replicas": [*first, self.twin.base_url]},
            "spare-openai": {"replicas": spare},
            "spare-anthropic": {"replicas": spare, **anthropic},
        }
        models = {f"corpus/{name}": _model(name) for name in backends}
        for case in cases:
            if len(named := ROUTES[case.route]) > 1:
                spares = [f"corpus/{name}" for name in named[1:]]
                own = {"upstream_model": case.word, "fallbacks": spares}
                models[case.model] = _model(named[0]) | own
        return msgspec.structs.replace(settings, backends=backends, models=models)


@asynccontextmanager
async def running_engines() -> AsyncGenerator[Engines]:
    async with (
        running_upstream(tokens=TOKENS) as primary,
        running_upstream(tokens=TOKENS) as twin,
        running_upstream(tokens=TOKENS) as spare,
    ):
        twin.scripts = primary.scripts
        twin.seen = spare.seen = primary.seen
        yield Engines(primary, twin, spare)


def _model(backend: str) -> Parts:
    abilities = {"features": [each for each in EVERYTHING["features"] if each != "cache_salt"]}
    if backend.endswith("anthropic"):
        abilities = MESSAGES_MODEL
    elif backend == "openai":
        abilities = EVERYTHING
    return model(
        backend=backend,
        pricing=SPARE_PRICES if backend.startswith("spare") else PRICES,
        input_modalities=["text", "image"],
        upstream_model=f"upstream-{backend}",
        **abilities,
    )


@dataclass
class Sent:
    """A case that was sent: what the caller and the engine saw, and the ID of the request."""

    case: Case
    caller: Parts | None
    engine: list[Parts]
    request_id: str | None


@dataclass
class Lane:
    """A customer with a project, a key and a policy for each guard."""

    customer: Deployment
    engines: Engines
    keys: dict[str, str] = field(default_factory=dict[str, str])
    names: dict[str, str] = field(default_factory=dict[str, str])
    sent: list[Sent] = field(default_factory=list[Sent])

    async def set_up(self) -> None:
        async with self.customer.administrator() as admin:
            for guard in GUARDS:
                await self._set_up(admin, guard)

    async def _set_up(self, admin: httpx2.AsyncClient, guard: str) -> None:
        project = await self.customer.org.project(guard)
        project_id = str(project.id)
        self.names[project_id] = f"<project {guard}>"
        policy = GUARDS[guard]
        if guard == "capped":
            limit = {"project_id": project_id, "period": "lifetime", "limit": {"value": "0.00001"}}
            path = "/manage/v1/organization/spending_limits"
            _succeeded(await admin.put(path, json=limit))
        elif guard == "unallowed":
            await self.customer.org.allow_models(project, "corpus/spare-openai")
        elif policy is not None:
            direction, mode, word = policy
            draft = {"name": guard, "rule": f'Does it say "{word}"?', "direction": direction}
            scope = {"mode": mode, "scope": "projects", "project_ids": [project_id]}
            once = {"idempotency-key": guard}
            path = "/v1/organization/policies"
            made = await admin.post(path, json=draft | scope, headers=once)
            policy_id = _succeeded(made)["id"]
            path = f"/manage/v1/organization/policies/{policy_id}/publish"
            published = {"revision": 1, "refuses_until_judged": True}
            _succeeded(await admin.post(path, json=published))
            self.names[policy_id] = f"<policy {guard}>"
        held = await self.customer.org.project_key(project)
        self.keys[guard] = held.value
        self.names[str(held.key.id)] = f"<key {guard}>"

    async def run(self, waiting: Iterator[Case]) -> None:
        """Send cases one after the other, until all lanes together have sent all."""
        async with self.customer.gateway.client() as client:
            for case in waiting:
                self.sent.append(await self._send(client, case))

    async def _send(self, client: httpx2.AsyncClient, case: Case) -> Sent:
        asking = asyncio.create_task(self._ask(client, case))
        if case.fault == "leaves" and not case.is_stream:
            stalled = asyncio.create_task(self._stalled(case))
            await asyncio.wait({asking, stalled}, return_when=asyncio.FIRST_COMPLETED)
            stalled.cancel()
            if not asking.done():
                asking.cancel()
        with suppress(asyncio.CancelledError):
            await asking
        answer = None if asking.cancelled() else asking.result()
        seen = self.engines.seen_of(case)
        for exchange in seen:
            # The gateway may read on, to learn what the answer costs.
            exchange.release()
        engine = [_engine_request(exchange) for exchange in seen]
        if case.fault in SENT_AGAIN:
            engine = [each for at, each in enumerate(engine) if each not in engine[:at]]
        request_id = answer["headers"].get("x-request-id") if answer else None
        return Sent(case, answer, engine, request_id)

    async def _stalled(self, case: Case) -> None:
        await (await self.engines.primary.seen.arrival(case.word)).stall()

    async def _ask(self, client: httpx2.AsyncClient, case: Case) -> Parts:
        """Return status, headers and body, or what had come where the answer broke off."""
        path = FORMS[case.form][0]
        headers, body = case.headers(self.keys[case.guard]), bytearray()
        async with client.stream("POST", path, headers=headers, content=case.body()) as answer:
            shown = {"status": answer.status_code, "headers": _headers(answer.headers)}
            try:
                async for chunk in answer.aiter_raw():
                    body += chunk
                    if case.fault == "leaves" and LEFT_AT.encode() in body:
                        return shown
            except httpx2.TransportError as error:
                body += f"\n<{type(error).__name__}>".encode()
        return shown | {"body": body.decode("utf-8", "backslashreplace").split("\n")}


def _succeeded(answer: httpx2.Response) -> Parts:
    assert answer.is_success, answer.text
    return answer.json()


def _headers(headers: Any) -> dict[str, str]:  # noqa: ANN401 - of either side
    return {name: value for name, value in sorted(headers.items()) if name not in HEADERS_LEFT_OUT}


def _engine_request(exchange: RecordedExchange) -> Parts:
    body = exchange.body.decode()
    return {"path": exchange.path, "headers": _headers(exchange.headers), "body": body}


async def observe(database_url: str, names: Iterable[str]) -> dict[str, dict[str, str]]:
    """Send the named cases, and return what was seen of each: a normal text for each side."""
    cases = [CASES[name] for name in names]
    judge = ScriptedJudge(fails=lambda q: Fault.NEITHER_SIDE if "unanswered" in q.rule else None)
    plain = settings_for(database_url)
    async with running_engines() as engines, running_judge(judge):
        for case in cases:
            _queue(engines.primary, case)
        settings = judged_by(engines.settings(plain, cases), judge.base_url)
        database = await connect(settings)
        try:
            async with running_gateway(settings) as gateway:
                lanes = [await _lane(gateway, engines, database) for _ in range(LANES)]
                waiting = iter(cases)
                await asyncio.gather(*(lane.run(waiting) for lane in lanes))
            # The gateway has stopped: all holds are settled, and all records are written.
            questions = _questions(judge)
            async with running_gateway(settings) as gateway:
                reading = (_read(lane, gateway, questions) for lane in lanes)
                found = await asyncio.gather(*reading)
        finally:
            await database.close()
    return {name: parts for each in found for name, parts in each.items()}


async def _lane(gateway: Gateway, engines: Engines, database: Any) -> Lane:  # noqa: ANN401 - only passed on
    org = await new_organization_fixture(database)
    lane = Lane(await customer_of(gateway, engines.primary, org), engines)
    lane.names[str(org.organization_id)] = "<organization>"
    await lane.set_up()
    return lane


def _queue(upstream: ScriptedUpstream, case: Case) -> None:
    if (script := case.script) is not None:
        times = 1 if case.fault == "once" else None
        upstream.queue(msgspec.convert(script, UpstreamScript), match=case.word, times=times)


def _questions(judge: ScriptedJudge) -> dict[str, list[Parts]]:
    """Return what the judge was asked about each request, each question once, in a fixed order."""
    found: dict[str, dict[str, Parts]] = defaultdict(dict)
    for question in judge.received:
        asked = {"rule": question.rule, "data": question.data}
        key = msgspec.json.encode(asked, order="deterministic")
        for word in set(_WORD.findall(key)):
            found[word.decode()][key.decode()] = asked
    return {word: [asked[key] for key in sorted(asked)] for word, asked in found.items()}


async def _read(
    lane: Lane, gateway: Gateway, questions: dict[str, list[Parts]]
) -> dict[str, dict[str, str]]:
    org = lane.customer.org
    recorded = [str(row[0]) for row in await org.database.fetch_all(RECORDED, org.organization_id)]
    _identify(lane.sent, recorded)
    ledger: dict[str, list[Parts]] = defaultdict(list)
    for row in await org.database.fetch_all(ENTRIES, org.organization_id):
        entry = {name: value for name, value in dict(row).items() if value not in (0, None)}
        ledger[str(entry.pop("reservation_id"))].append(entry)
    found: dict[str, dict[str, str]] = {}
    async with gateway.client(lane.customer.admin.value) as admin:
        await _check_costs(lane, admin, ledger)
        for sent in lane.sent:
            answer = await admin.get(f"/manage/v1/organization/requests/{sent.request_id}")
            own = {sent.case.word: "<word>"}
            if sent.request_id is not None:
                own |= {sent.request_id: "<request>", sent.request_id.replace("-", ""): "<request>"}
            normal = Normal(lane.names | own)
            found[sent.case.name] = normal.texts(
                caller=sent.caller,
                engine=sent.engine,
                judge=questions.get(sent.case.word, []),
                ledger=ledger.get(str(sent.request_id), []),
                record=answer.json() if answer.is_success else None,
            )
    return found


def _identify(sent: list[Sent], recorded: list[str]) -> None:
    """Give requests whose callers left before the head their IDs: the unknown ones, in order."""
    unknown = iter(sorted(set(recorded) - {str(each.request_id) for each in sent}))
    for each in sent:
        if each.caller is None:
            each.request_id = next(unknown)
    assert list(unknown) == [], "there is a record of a request that was not sent"


async def _check_costs(
    lane: Lane, admin: httpx2.AsyncClient, ledger: dict[str, list[Parts]]
) -> None:
    """Compare the report of costs, by project and line item, with the entries of the ledger."""
    spent: Counter[tuple[str, str]] = Counter()
    for entry in (entry for entries in ledger.values() for entry in entries):
        written = entry.get("cache_write_pico", 0)
        for column, item in LINE_ITEMS.items():
            amount = entry.get(column, 0) - (written if item == "input" else 0)
            spent[str(entry["project_id"]), f"{entry['model']}, {item}"] += amount
    yesterday = int(time.time()) - 86_400
    query: Parts = {"start_time": yesterday, "group_by": ["project_id", "line_item"]}
    answer = _succeeded(await admin.get("/v1/organization/costs", params=query))
    reported: Counter[tuple[str, str]] = Counter()
    for bucket in answer["data"]:
        for line in bucket["results"]:
            pico = round(float(line["amount"]["value"]) * 1e12)
            reported[line["project_id"], line["line_item"]] += pico
    assert +reported == +spent, "the report of costs differs from the ledger"
