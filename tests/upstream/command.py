"""`tollhouse test-upstream` in a checkout: a scripted engine for tests and load tests."""

from typing import Final, get_args

import click
import uvloop

from tests.upstream.scripts import TOKENS_MAX, WAIT_MS_MAX
from tests.upstream.upstream import TOKENS_DEFAULT, ScriptedUpstream
from tollhouse.catalog.types import Feature, SamplingParameter
from tollhouse.cli.arguments import example, json_option
from tollhouse.cli.trial.running_engine import RunningEngine, announce_and_wait

PORT_DEFAULT: Final = 8090
CONFIGURATION: Final = """\
[backends.test]
replicas = ["{base_url}"]
takes = ["cache_salt", "continuous_usage_stats", "prompt_cache_key"]
counts_tokens_by = "messages"

[models.test]
backend = "test"
context_length = 131072
max_output_length = 65536
default_output_tokens = 8192
drops_unsupported_tools = true
tokenizer = "bytes"
features = {features}
sampling_parameters = {sampling_parameters}
pricing = {{ prompt = "0.000001", completion = "0.000004" }}
"""


@click.command(
    "test-upstream",
    epilog=example(
        "tollhouse test-upstream --tokens 200 --chunk-delay-ms 20",
        "",
        "A message whose first line is a script is answered by it:",
        "",
        '{"script": {"tokens": 50, "between_events_ms": 100}}',
        '{"script": {"status": 429, "headers": {"retry-after": "7"}}}',
        '{"script": {"cut": {"how": "reset", "after": 3, "inside": true}}}',
    ),
)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=PORT_DEFAULT, help="0 chooses a free port."
)
@click.option(
    "--tokens",
    type=click.IntRange(0, TOKENS_MAX),
    default=TOKENS_DEFAULT,
    help="Tokens of an answer.",
)
@click.option(
    "--chunk-delay-ms",
    type=click.IntRange(0, WAIT_MS_MAX),
    default=0,
    help="Wait between two records of a stream.",
)
@json_option
def command(*, port: int, tokens: int, chunk_delay_ms: int, as_json: bool) -> None:
    """Run a scripted engine on loopback.

    It answers OpenAI chat completions, counts every word as a token, and fails in every way
    that a script names. GET /seen returns the requests that it received; POST /script queues a
    script for the next requests. docs/architecture/test-upstream.md describes all scripts.
    """
    upstream = ScriptedUpstream(tokens=tokens, chunk_delay_ms=chunk_delay_ms)
    uvloop.run(_run(upstream, port, as_json=as_json))


async def _run(upstream: ScriptedUpstream, port: int, *, as_json: bool) -> None:
    await upstream.start(port)
    await announce_and_wait(
        RunningEngine(
            name="The test upstream",
            base_url=upstream.base_url,
            configuration=configuration(upstream.base_url),
        ),
        as_json=as_json,
    )
    await upstream.stop()


def configuration(base_url: str) -> str:
    """Return the catalog of an engine that accepts every request field, as TOML."""
    return CONFIGURATION.format(
        base_url=base_url,
        features=_listed(get_args(Feature)),
        sampling_parameters=_listed(get_args(SamplingParameter)),
    )


def _listed(names: tuple[str, ...]) -> str:
    return "[\n{}]".format("".join(f'  "{name}",\n' for name in names))
