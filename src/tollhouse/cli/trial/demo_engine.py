"""`tollhouse demo-engine`: a small real model for trials, without a GPU."""

import asyncio
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import click
from rich.progress import Progress

from tollhouse.cli import output
from tollhouse.cli.arguments import example, json_option
from tollhouse.cli.trial.running_engine import RunningEngine, announce_and_wait
from tollhouse.trial.llama import SLOT_TOKENS, running_llama
from tollhouse.trial.model_file import WHEEL_BYTES, Report

PORT_DEFAULT: Final = 8091
MODEL: Final = "smollm2-135m"
# Without `n`: llama.cpp reports the tokens of one choice only.
CONFIGURATION: Final = """\
[backends.demo]
replicas = ["{base_url}"]
takes = ["timings_per_token"]
counts_tokens_by = "messages"
counts_exactly = true

[models.{model}]
backend = "demo"
context_length = {context_length}
max_output_length = {context_length}
tokenizer = "bytes"
template_tokens = 31
features = ["json_mode", "structured_outputs"]
sampling_parameters = [
  "temperature",
  "top_p",
  "frequency_penalty",
  "presence_penalty",
  "logit_bias",
  "seed",
  "stop",
  "logprobs",
  "top_logprobs",
]
pricing = {{ prompt = "0.0000001", completion = "0.0000004" }}
"""


@click.command(
    "demo-engine",
    epilog=example("tollhouse demo-engine", "tollhouse demo-engine --model-file ~/model.gguf"),
)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=PORT_DEFAULT, help="0 chooses a free port."
)
@click.option(
    "--model-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Another chat model, as a GGUF file.",
)
@json_option
def command(*, port: int, model_file: Path | None, as_json: bool) -> None:
    """Run a small real model with llama.cpp, on loopback.

    It is SmolLM2-135M-Instruct, whose answers are fluent and rarely right. The first start
    downloads its 100 MB into ~/.cache/tollhouse/models, or below XDG_CACHE_HOME. Needs the
    extra `demo`: pip install 'tollhouse[demo]'.
    """
    with ExitStack() as stack:
        with output.progress_bars(as_json=as_json) as bars:
            report = download_report(bars)
            llama = running_llama(model_file, port=port, name=MODEL, report=report)
            origin = stack.enter_context(llama)
        base_url = f"{origin}/v1"
        engine = RunningEngine(
            name="The demo engine", base_url=base_url, configuration=configuration(base_url)
        )
        asyncio.run(announce_and_wait(engine, as_json=as_json))


def download_report(bars: Progress) -> Report:
    """Return a function that shows a bar with the percentage of the model that has arrived."""
    task = bars.add_task("Downloading the model", total=WHEEL_BYTES, visible=False)

    def report(received_bytes: int) -> None:
        bars.update(task, completed=min(received_bytes, WHEEL_BYTES), visible=True)

    return report


def configuration(base_url: str) -> str:
    """Return the catalog of what llama.cpp supports with this model, as TOML."""
    return CONFIGURATION.format(base_url=base_url, model=MODEL, context_length=SLOT_TOKENS)
