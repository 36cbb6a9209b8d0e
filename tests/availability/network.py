"""Machines as network namespaces on one bridge: they can be cut off, frozen and killed."""

import os
import secrets
import shutil
import signal
import subprocess
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

ACCOUNT = "postgres"
DISK = "size=1536m,mode=755"


class NoNamespaces(Exception):
    """The machine that runs the tests may not create network namespaces."""


@dataclass(frozen=True, kw_only=True)
class Machine:
    """A namespace with an address, a disk of its own, and what was started in it."""

    name: str
    namespace: str
    link: str
    address: str
    disk: Path
    started: "list[subprocess.Popen[bytes]]" = field(
        default_factory=list["subprocess.Popen[bytes]"]
    )

    def start(self, *command: str, log: str, environment: Mapping[str, str] | None = None) -> int:
        """Start a program as the server's account; return its process ID."""
        with (self.disk.parent / f"{self.name}-{log}.log").open("ab") as written:
            process = subprocess.Popen(
                [
                    *("ip", "netns", "exec", self.namespace),
                    *("setpriv", "--reuid", ACCOUNT, "--regid", ACCOUNT, "--clear-groups"),
                    *command,
                ],
                env={"PATH": os.environ["PATH"] + ":/usr/sbin", **(environment or {})},
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=written,
                stderr=written,
            )
        self.started.append(process)
        return process.pid

    def processes(self) -> list[int]:
        return [int(pid) for pid in _output("ip", "netns", "pids", self.namespace).split()]

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to every process of the machine."""
        for pid in self.processes():
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def kill(self) -> None:
        """As a loss of power: no process says goodbye, and no packet leaves."""
        self._link("down")
        while self.processes():
            self.signal(signal.SIGKILL)
            self._reap()
        for process in self.started:
            process.wait()
        self.started.clear()

    def kill_process(self, pid: int) -> None:
        """Kill one of the programs that were started here."""
        os.kill(pid, signal.SIGKILL)
        self._reap()

    def _reap(self) -> None:
        """Let the dead processes that were started here go."""
        for process in self.started:
            process.poll()

    def plug_in(self) -> None:
        self._link("up")

    def cut_off(self, addresses: Sequence[str], *, ports: Sequence[int] = ()) -> None:
        """Drop all packets to and from the addresses, or only those of the ports."""
        listed = ", ".join(addresses)
        numbers = f"{{ {', '.join(map(str, ports))} }}"
        rules: list[str] = []
        for chain, side in (("input", "saddr"), ("output", "daddr")):
            match = f"add rule inet cut {chain} ip {side} {{ {listed} }}"
            rules.append(f"add chain inet cut {chain} {{ type filter hook {chain} priority 0; }}")
            if ports:
                rules += [f"{match} tcp {end} {numbers} drop" for end in ("sport", "dport")]
            else:
                rules.append(f"{match} drop")
        within = ("ip", "netns", "exec", self.namespace)
        _run(*within, "nft", " ; ".join(["add table inet cut", *rules]))

    def mend(self) -> None:
        """Undo `cut_off`."""
        with suppress(subprocess.CalledProcessError):
            _run("ip", "netns", "exec", self.namespace, "nft", "delete table inet cut")

    def _link(self, state: str) -> None:
        _run("ip", "link", "set", self.link, state)


@dataclass(frozen=True, kw_only=True)
class Network:
    """The bridge; callers are at its own address."""

    callers: str
    machines: Mapping[str, Machine]


@contextmanager
def running_network(folder: Path, names: Sequence[str]) -> Generator[Network]:
    """Yield machines without processes; nothing of them is left afterwards."""
    mark, subnet = (
        secrets.token_hex(2),
        f"10.{83 + secrets.randbelow(100)}.{secrets.randbelow(250)}",
    )
    bridge = f"thav{mark}"
    with ExitStack() as stack:
        try:
            _run("ip", "link", "add", bridge, "type", "bridge")
        except (subprocess.CalledProcessError, FileNotFoundError) as error:
            raise NoNamespaces from error
        stack.callback(_quietly, "ip", "link", "del", bridge)
        _run("ip", "addr", "add", f"{subnet}.1/24", "dev", bridge)
        _run("ip", "link", "set", bridge, "up")
        machines = {
            name: stack.enter_context(
                _machine(folder, name, bridge, f"{subnet}.{number}", f"{mark}{number}")
            )
            for number, name in enumerate(names, start=11)
        }
        yield Network(callers=f"{subnet}.1", machines=machines)


@contextmanager
def _machine(folder: Path, name: str, bridge: str, address: str, mark: str) -> Generator[Machine]:
    machine = Machine(
        name=name,
        namespace=f"availability-{mark}",
        link=f"thav{mark}",
        address=address,
        disk=folder / name,
    )
    machine.disk.mkdir()
    with ExitStack() as stack:
        _run("mount", "-t", "tmpfs", "-o", DISK, "tmpfs", str(machine.disk))
        stack.callback(_quietly, "umount", "-l", str(machine.disk))
        shutil.chown(machine.disk, ACCOUNT)
        _run("ip", "netns", "add", machine.namespace)
        stack.callback(_quietly, "ip", "netns", "del", machine.namespace)
        within = ("ip", "-n", machine.namespace)
        _run(
            *("ip", "link", "add", machine.link, "type", "veth"),
            *("peer", "name", "eth0", "netns", machine.namespace),
        )
        _run("ip", "link", "set", machine.link, "master", bridge, "up")
        _run(*within, "addr", "add", f"{address}/24", "dev", "eth0")
        _run(*within, "link", "set", "eth0", "up")
        _run(*within, "link", "set", "lo", "up")
        stack.callback(machine.kill)
        yield machine


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


def _quietly(*command: str) -> None:
    subprocess.run(command, check=False, capture_output=True)


def _output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
