"""`python -m bench.templates [--base-url URL --model NAME] [--tokenizer FAMILY] [--json]`.

Asks an engine how many prompt tokens it bills for small chats, and compares them with what would
be reserved. Without a URL it starts llama.cpp with the demo model. `template_tokens` is what to
declare of the model in the catalog for the tightest bound. Exits with 1 if a chat has more tokens
than its bound.
"""  # noqa: INP001 - a collection of commands, not a package

import argparse
import json
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any
from urllib.error import HTTPError

from tests.support.engine import Engine, running_engine
from tests.support.small_chats import SMALL_CHATS
from tollhouse.cli.trial.demo_engine import MODEL
from tollhouse.contract.chat import ChatRequest
from tollhouse.contract.decoding import decode
from tollhouse.ledger.bounds import ModelBounds, TokenizerFamily, of_chat_request

CONTEXT_LENGTH = 10**9
"""So large that it bounds nothing."""


def billed_tokens(engine: Engine, model: str) -> dict[str, int]:
    """The prompt tokens that the engine bills for each chat that it does not refuse."""
    found: dict[str, int] = {}
    for name, chat in SMALL_CHATS.items():
        try:
            answer = engine.post("/v1/chat/completions", chat | {"model": model, "max_tokens": 1})
        except HTTPError:
            continue
        found[name] = answer["usage"]["prompt_tokens"]
    return found


def bound_tokens(family: TokenizerFamily, template_tokens: int | None = None) -> dict[str, int]:
    """The prompt tokens that are reserved for each chat."""
    model = ModelBounds(
        tokenizer=family,
        template_tokens=template_tokens,
        context_length=CONTEXT_LENGTH,
        max_output_length=1,
    )
    return {
        name: of_chat_request(decode(chat | {"model": "m"}, ChatRequest), model).prompt_tokens
        for name, chat in SMALL_CHATS.items()
    }


def template_tokens(billed: dict[str, int]) -> int:
    """What to declare: all that is billed for a word, with or without a system message."""
    return max(billed[name] for name in ("question", "system") if name in billed)


@contextmanager
def _engine(base_url: str | None) -> Generator[Engine]:
    if base_url is not None:
        yield Engine(base_url=base_url)
        return
    with running_engine() as running:
        yield running


def main() -> int:
    """Print a line for each chat; with `--json` the last line is one JSON object."""
    parser = argparse.ArgumentParser(prog="python -m bench.templates")
    parser.add_argument("--base-url", help="of an engine, such as http://10.0.0.7:8000/v1")
    parser.add_argument("--model", default=MODEL, help="the engine's own name for it")
    families = [family.name.lower() for family in TokenizerFamily]
    parser.add_argument("--tokenizer", choices=families, default="bytes")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with _engine(arguments.base_url) as engine:
        billed = billed_tokens(engine, arguments.model)
    return _report(billed, TokenizerFamily[arguments.tokenizer.upper()], is_json=arguments.json)


def _report(billed: dict[str, int], family: TokenizerFamily, *, is_json: bool) -> int:
    declared = template_tokens(billed)
    default, tight = bound_tokens(family), bound_tokens(family, declared)
    sys.stdout.write(f"{'chat':10} {'billed':>7} {'default':>8} {'declared':>9}\n")
    chats: dict[str, Any] = {}
    for name, tokens in billed.items():
        sys.stdout.write(f"{name:10} {tokens:7} {default[name]:8} {tight[name]:9}\n")
        chats[name] = {"billed": tokens, "default": default[name], "declared": tight[name]}
    sys.stdout.write(f"template_tokens = {declared}\n")
    if is_json:
        sys.stdout.write(json.dumps({"template_tokens": declared, "chats": chats}) + "\n")
    return int(any(default[name] < tokens for name, tokens in billed.items()))


if __name__ == "__main__":
    sys.exit(main())
