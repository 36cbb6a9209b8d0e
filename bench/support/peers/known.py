"""The gateways that can be installed beside Tollhouse, each with its configuration file.

Every one runs as a single worker in production mode without an access log and without a database.
Versions are pinned in requirements/peers.
"""

import re
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final

from bench.support.interpreters import REPOSITORY

PINS: Final = REPOSITORY / "requirements" / "peers"
CONFIGURATIONS: Final = Path(__file__).parent
_PYTHON_PIN: Final = re.compile(r"==(\S+)")
_NODE_PIN: Final = re.compile(r'/gateway": *"([^"]+)"')


class Runtime(StrEnum):
    """What a gateway is written in. Tollhouse must be ahead of those in Python and Node."""

    C = "C"
    CPP = "C++"
    PYTHON = "Python"
    NODE = "Node"


@dataclass(frozen=True, kw_only=True)
class Peer:
    """How one gateway is installed, started and asked.

    `command` and the configuration file hold `$name` for what is known only at its start: `home`
    (its environment), `configuration`, `port`, `stream_port`, `upstream_port`,
    `stream_upstream_port` and `key`.
    """

    name: str
    pin: str
    """Its file in requirements/peers, without the ending; a folder for a Node package."""
    runtime: Runtime
    configuration: str
    command: tuple[str, ...]
    leaves_out: str
    """What Tollhouse does in the same measurement and this gateway does not."""
    environment: dict[str, str] = field(default_factory=dict[str, str])
    configuration_header: str | None = None
    """The header that carries the configuration with each request, if no file is read at start."""
    has_stream_port: bool = False
    """It tells the upstreams apart by the port that it is called on, not by the model."""
    has_slash_in_models: bool = True

    @property
    def is_node(self) -> bool:
        """True if npm installs it, and not pip."""
        return self.runtime is Runtime.NODE

    @property
    def requirement(self) -> Path:
        """The file that pins its version."""
        return PINS / self.pin / "package.json" if self.is_node else PINS / f"{self.pin}.in"

    @property
    def lock(self) -> Path:
        """The file that pins the versions of all its packages."""
        return PINS / self.pin / "package-lock.json" if self.is_node else PINS / f"{self.pin}.txt"

    @property
    def version(self) -> str:
        """Return the pinned version; every requirement pins one."""
        pattern = _NODE_PIN if self.is_node else _PYTHON_PIN
        found = pattern.search(self.requirement.read_text(encoding="utf-8"))
        assert found is not None, f"{self.requirement} pins no version"
        return found[1]

    @property
    def configuration_file(self) -> Path:
        """Its configuration as it is published."""
        return CONFIGURATIONS / self.configuration


PEERS: Final = (
    Peer(
        name="Envoy",
        pin="envoy",
        runtime=Runtime.CPP,
        configuration="envoy.yaml",
        command=(
            *("$home/bin/envoy", "--config-path", "$configuration", "--concurrency", "1"),
            *("--disable-hot-restart", "--log-level", "error"),
        ),
        leaves_out="keys, limits, admission and ledger; bodies pass unread",
        has_stream_port=True,
    ),
    Peer(
        name="LiteLLM",
        pin="litellm",
        runtime=Runtime.PYTHON,
        configuration="litellm.yaml",
        command=(
            *("$home/bin/litellm", "--config", "$configuration", "--num_workers", "1"),
            *("--host", "127.0.0.1", "--port", "$port"),
        ),
        environment={
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            "LITELLM_LOG": "ERROR",
            "LITELLM_MODE": "PRODUCTION",
        },
        leaves_out="keys of callers (one master key), limits, admission and ledger",
    ),
    Peer(
        name="MLflow gateway",
        pin="mlflow",
        runtime=Runtime.PYTHON,
        configuration="mlflow.yaml",
        command=(
            *("$home/bin/mlflow", "gateway", "start", "--config-path", "$configuration"),
            *("--host", "127.0.0.1", "--port", "$port", "--workers", "1"),
        ),
        environment={"MLFLOW_DISABLE_TELEMETRY": "true"},
        leaves_out="keys, limits, admission and ledger",
        has_slash_in_models=False,
    ),
    Peer(
        name="Portkey gateway",
        pin="portkey",
        runtime=Runtime.NODE,
        configuration="portkey.json",
        command=(
            *("node", "$home/node_modules/@portkey-ai/gateway/build/start-server.js"),
            *("--port=$port", "--headless"),
        ),
        environment={"NODE_ENV": "production", "TRUSTED_CUSTOM_HOSTS": "127.0.0.1"},
        leaves_out="keys, limits, admission and ledger",
        configuration_header="x-portkey-config",
    ),
)
