"""`python -m bench.bounds [--json]`: what bounding a request costs, beside encoding it once.

Medians, in microseconds of one core. The model's context is large enough that nothing is skipped.
"""  # noqa: INP001 - a collection of commands, not a package

import argparse
import json
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import msgspec

from tollhouse.contract.chat import ChatRequest
from tollhouse.contract.decoding import decode
from tollhouse.ledger.bounds import ModelBounds, TokenizerFamily, of_chat_request

ROUNDS = 300
SENTENCE = 'The quick "brown" fox jumps over 12 lazy dogs.\n'
TOOL = {
    "type": "function",
    "function": {
        "name": "search_documents",
        "description": "Search the documents of the project for a phrase",
        "parameters": {
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "What to look for"},
                "limit": {"type": "integer", "minimum": 1, "maximum": 100},
            },
            "required": ["query"],
        },
    },
}
MODEL = ModelBounds(tokenizer=TokenizerFamily.BYTES, context_length=10**9, max_output_length=8_192)


def body(*, text_bytes: int, messages: int = 1, tools: int = 0) -> ChatRequest:
    """A request with about as much text, spread over its messages."""
    content = (SENTENCE * (text_bytes // messages // len(SENTENCE) + 1))[: text_bytes // messages]
    said: list[dict[str, Any]] = [{"role": "user", "content": content}] * messages
    return decode({"model": "m", "messages": said, "tools": [TOOL] * tools}, ChatRequest)


REQUESTS = {
    "4 KB, one message": body(text_bytes=4_096),
    "4 KB, ten messages": body(text_bytes=4_096, messages=10),
    "4 KB, half of it five tools": body(text_bytes=2_300, tools=5),
    "256 KB, one message": body(text_bytes=262_144),
    "256 KB, 200 messages": body(text_bytes=262_144, messages=200),
    "256 KB, nearly all tools": body(text_bytes=100, tools=800),
}


def median_us(act: Callable[[], object]) -> float:
    """The median time of many calls."""
    durations: list[int] = []
    for _ in range(ROUNDS):
        begun = time.perf_counter_ns()
        act()
        durations.append(time.perf_counter_ns() - begun)
    return median(durations) / 1_000


def main() -> int:
    """Print a line for each request; with `--json` the last line is one JSON object."""
    parser = argparse.ArgumentParser(prog="python -m bench.bounds")
    parser.add_argument("--json", action="store_true")
    is_json = parser.parse_args().json
    measured: dict[str, dict[str, float]] = {}
    sys.stdout.write(f"{'request':30} {'bound':>9} {'encode':>9}\n")
    for name, request in REQUESTS.items():
        bound = median_us(lambda request=request: of_chat_request(request, MODEL))
        encode = median_us(lambda request=request: msgspec.json.encode(request))
        sys.stdout.write(f"{name:30} {bound:9.1f} {encode:9.1f}\n")
        measured[name] = {"bound_us": bound, "encode_us": encode}
    if is_json:
        sys.stdout.write(json.dumps(measured) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
