"""Run the image as deploy/kubernetes does: migrate, serve, answer one chat, stop."""

import asyncio
import os
import secrets
import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import httpx2
import msgspec
import yaml

from tests.cli.commands import free_port
from tests.support import databases
from tests.support.collector import Collector, collecting
from tests.support.upstream import upstream_process
from tests.upstream.command import configuration
from tools.image.programs import ProgramFailed, run, succeeds

ROOT: Final = Path(__file__).parents[2]
KUSTOMIZATION: Final = ROOT / "deploy/kubernetes/base/kustomization.yaml"
GATEWAY: Final = "gateway"
USER: Final = 10001
READY_SECONDS_MAX: Final = 60
STOP_SECONDS: Final = 60
RUN: Final = (
    *("podman", "run", "--pull=never", "--network=host", "--cgroups=disabled", "--no-healthcheck"),
    *("--read-only", "--read-only-tmpfs=false", "--tmpfs=/tmp"),
    *("--cap-drop=all", "--security-opt=no-new-privileges"),
)


class Walk:
    """One run of an image on an empty database. Counts what it has seen to hold."""

    def __init__(self, image: str, options: tuple[str, ...]) -> None:
        self._image = image
        self._options = options
        self.passed = 0

    def see(self, what: str, *, holds: bool) -> None:
        """Count and print a property. Raises `ProgramFailed` if it does not hold."""
        if not holds:
            raise ProgramFailed(what)
        self.passed += 1
        print(f"passed: {what}", flush=True)

    def tollhouse(self, *arguments: str) -> str:
        """Run a command in a container of its own and return what it printed."""
        return run(*RUN, "--rm", *self._options, self._image, *arguments)

    def migrate_twice(self) -> None:
        """Migrate from two containers at once, as two pods do that start together."""
        with ThreadPoolExecutor() as pool:
            runs = [pool.submit(self.tollhouse, "migrate", "--json") for _ in range(2)]
        applied = [len(_read(each.result())["applied"]) for each in runs]
        self.see("one of two migrations applies", holds=min(applied) == 0 < max(applied))

    def serve(self, origin: str, probes: str) -> None:
        """Start the gateway, send one chat, and stop it."""
        key = _read(self.tollhouse("init", "--existing-config", "--json"))["project_key"]["value"]
        run(*RUN, "--detach", "--name", GATEWAY, *self._options, self._image)
        try:
            self.see("the gateway is ready", holds=_is_ready(probes))
            self.see("it runs as its user", holds=_in_gateway("id", "-u").strip() == str(USER))
            touch = ("podman", "exec", GATEWAY, "touch")
            self.see("/tmp can be written", holds=succeeds(*touch, "/tmp/file"))  # noqa: S108 - of a container
            self.see("/run/tollhouse cannot", holds=not succeeds(*touch, "/run/tollhouse/file"))
            for path in ("/docs/", "/console/"):
                answer = httpx2.get(f"{origin}{path}", follow_redirects=True)
                self.see(f"{path} is in the image", holds=answer.is_success)
            self.see("a chat is answered", holds=_is_answered(origin, key))
            run("podman", "stop", "--time", str(STOP_SECONDS), GATEWAY)
            state = run("podman", "inspect", "--format", "{{.State.ExitCode}}", GATEWAY)
            self.see("it stops with status 0", holds=state.strip() == "0")
        except ProgramFailed:
            print(run("sh", "-c", f"podman logs {GATEWAY} 2>&1"), flush=True)
            raise


def walk(image: str, folder: Path) -> int:
    """Run the image on a database of its own; return how many properties were seen to hold."""
    ports = free_port(), free_port()
    origin, probes = (f"http://127.0.0.1:{port}" for port in ports)
    with _database() as url, upstream_process() as upstream, collecting(Collector()) as collector:
        mounts = _mounted(folder, url, upstream, collector.url)
        walked = Walk(image, (*mounts, *_variables(*ports)))
        walked.migrate_twice()
        walked.serve(origin, probes)
        spans = {span.name for span in collector.spans()}
        walked.see("the chat is traced", holds="chat test" in spans)
        walked.tollhouse("archive", "run")
        walked.see("the archive runs", holds=True)
    return walked.passed


@contextmanager
def _database() -> Generator[str]:
    name = databases.fresh_name()
    asyncio.run(databases.create(name))
    try:
        yield databases.url_of(name)
    finally:
        asyncio.run(databases.drop(name))


def _mounted(folder: Path, database: str, upstream: str, collector: str) -> tuple[str, str]:
    """Write configuration and secrets, owned as in a pod; return the options that mount them."""
    settings, kept = folder / "configuration", folder / "secrets"
    settings.mkdir()
    extras = {"otel": f'endpoint = "{collector}"', "archive": 'url = "file:///tmp/archive"'}
    tables = [f"[{name}]\n{line}\n" for name, line in extras.items()]
    text = "\n".join((configuration(upstream), *tables))
    (settings / "tollhouse.toml").write_text(text, encoding="utf-8")
    kept.mkdir()
    contents = {"database-url": database, "master": _secret()}
    for name, content in contents.items():
        (kept / name).write_text(content, encoding="utf-8")
        (kept / name).chmod(0o440)
        os.chown(kept / name, 0, USER)
    return f"--volume={settings}:/etc/tollhouse:ro", f"--volume={kept}:/run/tollhouse:ro"


def _secret() -> str:
    return secrets.token_urlsafe(48)


def _variables(port: int, probe_port: int) -> tuple[str, ...]:
    """Return the environment of the pods, but on loopback, on free ports and without Redis."""
    generators = yaml.safe_load(KUSTOMIZATION.read_text(encoding="utf-8"))["configMapGenerator"]
    (literals,) = (each["literals"] for each in generators if "literals" in each)
    variables = dict(literal.split("=", 1) for literal in literals)
    del variables["TOLLHOUSE_REDIS__URL"]
    own = {"HOST": "127.0.0.1", "PROBE_HOST": "127.0.0.1", "PORT": port, "PROBE_PORT": probe_port}
    variables |= {f"TOLLHOUSE_SERVER__{name}": str(value) for name, value in own.items()}
    return tuple(f"--env={name}={value}" for name, value in variables.items())


def _in_gateway(*command: str) -> str:
    return run("podman", "exec", GATEWAY, *command)


def _is_ready(probes: str) -> bool:
    deadline = time.monotonic() + READY_SECONDS_MAX
    while time.monotonic() < deadline:
        try:
            if httpx2.get(f"{probes}/readyz").is_success:
                return True
        except httpx2.TransportError:
            pass
        time.sleep(0.5)
    return False


def _is_answered(origin: str, key: str) -> bool:
    body = {"model": "test", "messages": [{"role": "user", "content": "Hello"}]}
    headers = {"authorization": f"Bearer {key}"}
    answer = httpx2.post(f"{origin}/v1/chat/completions", json=body, headers=headers, timeout=30)
    return answer.is_success and bool(answer.json()["choices"][0]["message"]["content"])


def _read(printed: str) -> dict[str, Any]:
    return msgspec.json.decode(printed)
