"""Redis servers of a test's own that fail over, with Sentinels or as a cluster."""

import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import redis

from tests.support.certificates import Certificates

HOST = "127.0.0.1"
SERVICE = "tollhouse"
USER = "tollhouse"
PASSWORD = "counts-traffic"
ADMIN_PASSWORD = "administers-redis"
SENTINEL_PASSWORD = "asks-sentinels"
WAIT_SECONDS = 60.0
POLL_SECONDS = 0.02
DOWN_AFTER_MS = 500


def wait_until(is_so: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not is_so():
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        time.sleep(POLL_SECONDS)


def free_ports(count: int) -> list[int]:
    with ExitStack() as probes:
        opened = [probes.enter_context(socket.create_server((HOST, 0))) for _ in range(count)]
        return [each.getsockname()[1] for each in opened]


@dataclass
class Node:
    """One process: a server, a Sentinel or a node of a cluster."""

    port: int
    directory: Path
    configuration: list[str]
    password: str
    certificates: Certificates | None = None
    is_sentinel: bool = False
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    @property
    def is_alive(self) -> bool:
        return self._process is not None

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    def start(self) -> None:
        """Returns when it answers."""
        self.directory.mkdir(exist_ok=True)
        path = self.directory / "redis.conf"
        if not path.exists():
            path.write_text("\n".join([f"dir {self.directory}", *self.configuration, ""]))
        mode = ["--sentinel"] if self.is_sentinel else []
        program = shutil.which("redis-server")
        assert program is not None, "redis-server is not installed"
        with (self.directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [program, str(path), *mode], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        wait_until(self._answers, f"port {self.port} answers")

    def kill(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait(WAIT_SECONDS)

    def pause(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    @contextmanager
    def client(self) -> Generator[Any]:
        options: dict[str, Any] = {}
        if self.certificates is not None:
            options = {"ssl": True, "ssl_ca_certs": str(self.certificates.authority)}
        opened = redis.Redis(
            port=self.port,
            host=HOST,
            password=self.password,
            decode_responses=True,
            protocol=2,
            socket_timeout=WAIT_SECONDS,
            **options,
        )
        try:
            yield opened
        finally:
            opened.close()

    def ask(self, *words: str) -> Any:  # noqa: ANN401 - an answer of any type
        with self.client() as client:
            return client.execute_command(*words)

    def slots_taken(self) -> int:
        """Count the slots of concurrent requests that it knows of."""
        with self.client() as client:
            return sum(client.zcard(key) for key in client.scan_iter("*:concurrent:*"))

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self.directory / "log").read_text()
        try:
            return bool(self.ask("PING"))
        except redis.RedisError:
            return False


@dataclass
class Group:
    """Servers, and the Sentinels that watch them, if there are any."""

    servers: list[Node]
    sentinels: list[Node]
    url: str

    def master(self, key: str = "") -> Node:
        """Returns the server that has `key` now, as a majority of the living says."""
        if self.sentinels:
            told = self._living(self.sentinels).ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", SERVICE)
            return self._at(int(told[1]))
        slot = int(self._living(self.servers).ask("CLUSTER", "KEYSLOT", key))
        for first, last, owner, *_ in self._living(self.servers).ask("CLUSTER", "SLOTS"):
            if first <= slot <= last:
                return self._at(int(owner[1]))
        raise AssertionError(key)

    def await_failover(self, lost: Node, key: str = "") -> Node:
        """Wait until another server is the master, and accepts writes."""
        wait_until(lambda: self.master(key) is not lost, "another server is master")
        promoted = self.master(key)
        wait_until(lambda: promoted.ask("ROLE")[0] == "master", "it knows that it is master")
        return promoted

    def await_replica(self) -> None:
        """Wait until a failover is possible."""
        living = [sentinel for sentinel in self.sentinels if sentinel.is_alive]
        wait_until(lambda: all(_sees_all(each) for each in living), "the Sentinels see all")
        wait_until(
            lambda: self.master().ask("INFO", "replication")["connected_slaves"] > 0, "a replica"
        )

    def _living(self, nodes: list[Node]) -> Node:
        return next(node for node in reversed(nodes) if node.is_alive)

    def _at(self, port: int) -> Node:
        return next(node for node in self.servers if node.port == port)


def access_rule() -> str:
    """Returns the permissions that the guide gives to the user of the gateway."""
    guide = (Path(__file__).parents[2] / "docs/guides/redis.md").read_text()
    (line,) = [line for line in guide.splitlines() if line.startswith("user tollhouse on ")]
    return line.replace("PASSWORD", PASSWORD)


def _security(certificates: Certificates | None, port: int) -> list[str]:
    lines = [f"bind {HOST}"]
    if certificates is None:
        return [*lines, f"port {port}"]
    return [
        *lines,
        "port 0",
        f"tls-port {port}",
        f"tls-cert-file {certificates.certificate}",
        f"tls-key-file {certificates.key}",
        f"tls-ca-cert-file {certificates.authority}",
        "tls-auth-clients no",
        "tls-replication yes",
        "tls-cluster yes",
    ]


def server_lines(port: int, certificates: Certificates | None) -> list[str]:
    return [
        *_security(certificates, port),
        'save ""',
        f"requirepass {ADMIN_PASSWORD}",
        f"masterauth {ADMIN_PASSWORD}",
        access_rule(),
    ]


def _options(certificates: Certificates | None) -> dict[str, str]:
    return {} if certificates is None else {"ssl_ca_certs": str(certificates.authority)}


def _url(kind: str, nodes: list[Node], path: str, options: dict[str, str], *, tls: bool) -> str:
    scheme = "rediss" if tls else "redis"
    hosts = ",".join(node.address for node in nodes)
    query = "&".join(f"{name}={value}" for name, value in options.items())
    return f"{scheme}{kind}://{USER}:{PASSWORD}@{hosts}{path}" + (f"?{query}" if query else "")


@contextmanager
def _running(nodes: list[Node]) -> Generator[None]:
    try:
        for node in nodes:
            node.start()
        yield
    finally:
        for node in nodes:
            node.kill()


@contextmanager
def running_server(directory: Path, certificates: Certificates | None) -> Generator[Group]:
    """One server with a password, and with TLS."""
    (port,) = free_ports(1)
    lines = server_lines(port, certificates)
    node = Node(port, directory / "single", lines, ADMIN_PASSWORD, certificates)
    options = _options(certificates)
    url = _url("", [node], "/0", options, tls=certificates is not None)
    with _running([node]):
        yield Group([node], [], url)


@contextmanager
def running_sentinels(
    directory: Path, certificates: Certificates | None = None, *, replicas: int = 2
) -> Generator[Group]:
    """A master, its replicas, and three Sentinels."""
    ports = free_ports(4 + replicas)
    servers: list[Node] = []
    for port in ports[3:]:
        lines = server_lines(port, certificates)
        if servers:
            lines.append(f"replicaof {HOST} {servers[0].port}")
        servers.append(
            Node(port, directory / f"server-{port}", lines, ADMIN_PASSWORD, certificates)
        )
    sentinels = [_sentinel(directory, port, servers[0], certificates) for port in ports[:3]]
    options = {"sentinel_password": SENTINEL_PASSWORD, **_options(certificates)}
    url = _url("+sentinel", sentinels, f"/{SERVICE}/0", options, tls=certificates is not None)
    with _running(servers), _running(sentinels):
        group = Group(servers, sentinels, url)
        group.await_replica()
        yield group


def _sentinel(directory: Path, port: int, master: Node, certificates: Certificates | None) -> Node:
    lines = [
        *_security(certificates, port),
        f"requirepass {SENTINEL_PASSWORD}",
        f"sentinel sentinel-pass {SENTINEL_PASSWORD}",
        f"sentinel monitor {SERVICE} {HOST} {master.port} 2",
        f"sentinel auth-pass {SERVICE} {ADMIN_PASSWORD}",
        f"sentinel down-after-milliseconds {SERVICE} {DOWN_AFTER_MS}",
        f"sentinel failover-timeout {SERVICE} 2000",
    ]
    return Node(
        port,
        directory / f"sentinel-{port}",
        lines,
        SENTINEL_PASSWORD,
        certificates,
        is_sentinel=True,
    )


def _sees_all(sentinel: Node) -> bool:
    """Whether it knows a replica and the other Sentinels, as a failover needs."""
    answer = sentinel.ask("SENTINEL", "MASTER", SERVICE)
    told = dict(zip(answer[::2], answer[1::2], strict=True))
    return int(told["num-slaves"]) > 0 and int(told["num-other-sentinels"]) == 2


@contextmanager
def running_cluster(
    directory: Path, certificates: Certificates | None = None, *, replicas: int = 1
) -> Generator[Group]:
    """Three masters with their replicas."""
    count = 3 * (1 + replicas)
    ports = free_ports(2 * count)
    nodes = [
        Node(
            port,
            directory / f"node-{port}",
            [
                *server_lines(port, certificates),
                "cluster-enabled yes",
                f"cluster-port {bus}",
                f"cluster-node-timeout {2 * DOWN_AFTER_MS}",
                "cluster-replica-validity-factor 0",
                "cluster-require-full-coverage no",
            ],
            ADMIN_PASSWORD,
            certificates,
        )
        for port, bus in zip(ports[:count], ports[count:], strict=True)
    ]
    with _running(nodes):
        cluster_command(
            nodes, "create", *(node.address for node in nodes), "--cluster-replicas", str(replicas)
        )
        url = _url("+cluster", nodes[:2], "", _options(certificates), tls=certificates is not None)
        group = Group(nodes, [], url)
        wait_until(lambda: all(_is_complete(node, count) for node in nodes), "the cluster is up")
        yield group


def cluster_command(nodes: list[Node], *words: str) -> None:
    certificates = nodes[0].certificates
    tls = [] if certificates is None else ["--tls", "--cacert", str(certificates.authority)]
    arguments = ["redis-cli", *tls, "--no-auth-warning", "-a", ADMIN_PASSWORD, "--cluster", *words]
    done = subprocess.run(
        [*arguments, "--cluster-yes"], check=False, capture_output=True, timeout=WAIT_SECONDS
    )
    assert done.returncode == 0, done.stdout + done.stderr


def _is_complete(node: Node, count: int) -> bool:
    lines = str(node.ask("CLUSTER", "NODES")).splitlines()
    told = dict(
        line.split(":", 1) for line in str(node.ask("CLUSTER", "INFO")).splitlines() if ":" in line
    )
    replication = node.ask("INFO", "replication")
    is_linked = replication["role"] == "master" or replication["master_link_status"] == "up"
    return told["cluster_state"] == "ok" and len(lines) == count and is_linked
