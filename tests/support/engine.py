"""Engines as processes of their own, started by the verbs that people start them with."""

import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPResponse
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from tests.support.gateway import TIMEOUT_SECONDS

SOURCE = Path(__file__).parents[2] / "src"
COMMAND = "from tollhouse.cli.main import main; main()"


@dataclass(frozen=True, kw_only=True, slots=True)
class Engine:
    """A running engine with a real model."""

    base_url: str

    @property
    def origin(self) -> str:
        return self.base_url.removesuffix("/v1")

    def render(self, body: dict[str, Any]) -> str:
        """The prompt that the model's own chat template makes of a chat request."""
        return self.post("/apply-template", body)["prompt"]

    def count_tokens(self, prompt: str) -> int:
        """As many tokens as the engine would bill for the prompt."""
        body = {"content": prompt, "add_special": True, "parse_special": True}
        return len(self.post("/tokenize", body)["tokens"])

    def stream(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        """The records of a chat that is streamed."""
        with self._open("/v1/chat/completions", body | {"stream": True}) as answer:
            lines = [line.decode().strip() for line in answer]
        payloads = [line.removeprefix("data: ") for line in lines if line]
        assert payloads.pop() == "[DONE]"
        return [json.loads(payload) for payload in payloads]

    def tokens_of(self, text: str) -> list[int]:
        """Of the text alone, without any that the model's template adds."""
        return self.post("/tokenize", {"content": text, "add_special": False})["tokens"]

    def metrics(self) -> dict[str, float]:
        """What the engine counts of itself, by name; the series of one name are added up."""
        with urlopen(f"{self.origin}/metrics", timeout=TIMEOUT_SECONDS) as answer:  # noqa: S310 - loopback
            lines = [
                line for line in answer.read().decode().splitlines() if line[:1] not in ("", "#")
            ]
        counted: dict[str, float] = defaultdict(float)
        for name, value in (line.rsplit(" ", 1) for line in lines):
            counted[name.split("{", 1)[0]] += float(value)
        return counted

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Ask the engine itself, past any gateway."""
        with self._open(path, body) as answer:
            return json.load(answer)

    def _open(self, path: str, body: dict[str, Any]) -> HTTPResponse:
        headers = {"content-type": "application/json"}
        request = Request(f"{self.origin}{path}", json.dumps(body).encode(), headers)  # noqa: S310 - loopback
        return urlopen(request, timeout=TIMEOUT_SECONDS)  # noqa: S310 - loopback


@contextmanager
def running_engine() -> Generator[Engine]:
    """llama.cpp with SmolLM2-135M-Instruct, as `tollhouse demo-engine` runs it."""
    with engine_process("demo-engine") as base_url:
        yield Engine(base_url=base_url)


@contextmanager
def engine_process(verb: str, *options: str) -> Generator[str]:
    """The base URL of the engine that a verb runs, on a free port, until the block is left."""
    process = subprocess.Popen(
        [sys.executable, "-c", COMMAND, verb, "--port", "0", "--json", *options],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
    )
    try:
        assert process.stdout is not None
        # It ends when the process does, at the latest.
        announced = process.stdout.readline()
        assert announced, f"{verb} did not start"
        yield json.loads(announced)["base_url"]
    finally:
        process.terminate()
        try:
            process.communicate(timeout=TIMEOUT_SECONDS)
        finally:
            process.kill()
