"""`tollhouse scripted-engine`: the engine of a trial that needs no model."""

import asyncio
from threading import Thread
from typing import Final

import click

from tollhouse.cli.arguments import example, json_option
from tollhouse.cli.trial.running_engine import RunningEngine, announce_and_wait
from tollhouse.trial import engine

PORT_DEFAULT: Final = 8090
CONFIGURATION: Final = """\
[backends.test]
replicas = ["{base_url}"]
takes = ["cache_salt", "prompt_cache_key"]

[models.test]
backend = "test"
context_length = 131072
max_output_length = 65536
default_output_tokens = 8192
drops_unsupported_tools = true
tokenizer = "bytes"
features = [
  "cache_salt",
  "json_mode",
  "prediction",
  "prompt_cache_retention",
  "reasoning",
  "reasoning_budget",
  "service_tier",
  "structured_outputs",
  "tools",
  "verbosity",
]
sampling_parameters = [
  "temperature",
  "top_p",
  "frequency_penalty",
  "presence_penalty",
  "logit_bias",
  "n",
  "seed",
  "stop",
]
pricing = {{ prompt = "0.000001", completion = "0.000004" }}
"""


@click.command(
    "scripted-engine",
    epilog=example(
        "tollhouse scripted-engine",
        "",
        "A message whose first line is a script is answered by it:",
        "",
        '{"script": {"tokens": 50, "between_events_ms": 100}}',
        '{"script": {"status": 429, "headers": {"retry-after": "7"}}}',
        '{"script": {"cut_after": 3}}',
    ),
)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=PORT_DEFAULT, help="0 chooses a free port."
)
@json_option
def command(*, port: int, as_json: bool) -> None:
    """Run the scripted engine of a trial on loopback.

    It answers chat completions and counts every word as a token. docs/guides/scripted-engine.md
    describes its scripts.
    """
    with engine.server(port) as server:
        base_url = f"http://{engine.HOST}:{server.server_port}/v1"
        Thread(target=server.serve_forever, daemon=True).start()
        running = RunningEngine(
            name="The scripted engine", base_url=base_url, configuration=configuration(base_url)
        )
        asyncio.run(announce_and_wait(running, as_json=as_json))
        server.shutdown()


def configuration(base_url: str) -> str:
    """Return the catalog of what the scripted engine answers or ignores, as TOML."""
    return CONFIGURATION.format(base_url=base_url)
