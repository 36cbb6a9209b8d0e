"""vLLM on CPU, as processes of its own. Each needs some 4 GB of memory, and a minute to start."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.error import URLError
from urllib.request import urlopen

from tests.support.engine import Engine
from tools import vllm

NAME = "smollm2-135m"
CONTEXT_TOKENS = 2_048
START_SECONDS_MAX = 900.0
END_SECONDS_MAX = 60.0
ENVIRONMENT = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    # Threads that wait for each other on a busy machine crawl.
    "OMP_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
}
OPTIONS = (
    *("--model", str(vllm.MODEL), "--served-model-name", NAME),
    *("--max-model-len", str(CONTEXT_TOKENS), "--enforce-eager"),
    *("--enable-auto-tool-choice", "--tool-call-parser", "hermes"),
    "--enable-prompt-tokens-details",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class VllmEngine(Engine):
    """A replica that can be lost."""

    group_id: int

    def kill(self) -> None:
        """At once, with all its workers."""
        os.killpg(self.group_id, signal.SIGKILL)


@contextmanager
def running_vllm(*options: str) -> Generator[VllmEngine]:
    """Yields when the engine answers; its log goes to standard error."""
    vllm.prepared()
    port = _free_port()
    process = subprocess.Popen(
        [
            *(vllm.PYTHON, "-m", "vllm.entrypoints.openai.api_server"),
            *(*OPTIONS, *options, "--host", "127.0.0.1", "--port", str(port)),
        ],
        stdout=2,
        env=os.environ | ENVIRONMENT,
        start_new_session=True,
    )
    try:
        engine = VllmEngine(base_url=f"http://127.0.0.1:{port}/v1", group_id=process.pid)
        _wait_for(engine, process)
        yield engine
    finally:
        _end(process)


def _wait_for(engine: Engine, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < until:
        assert process.poll() is None, "vLLM has ended"
        try:
            with urlopen(f"{engine.origin}/health", timeout=START_SECONDS_MAX) as answer:  # noqa: S310 - loopback
                assert answer.status == 200
                return
        except URLError:
            time.sleep(0.5)  # another program has no event to wait for
    message = "vLLM does not answer"
    raise AssertionError(message)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Its workers form a group with it, and some of them stay if they are only asked."""
    process.terminate()
    try:
        process.wait(END_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]
