"""`python -m bench.support.open_loop`: requests at a constant rate, whether or not answers come.

A process of its own on bare sockets, because it has to send several times what a worker can
answer. It reads an `OpenLoad` from standard input, writes a line when it has sent the last request
and a second one with the latencies by status.
"""

import json
import select
import socket
import sys
import time
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

ANSWER_SECONDS_MAX: Final = 30.0
RECEIVE_BYTES: Final = 65_536
ROUND_SECONDS: Final = 0.001
"""What is due or has arrived in so short a time is sent or read at once: every turn of its own
would take the processor from the worker."""
_UNKNOWN: Final = b"GET /unknown HTTP/1.1\r\nHost: localhost\r\n\r\n"
_STATUS: Final = slice(9, 12)


@dataclass(frozen=True, kw_only=True)
class OpenLoad:
    """What is sent, how often, and on how many connections."""

    port: int
    request: str
    per_second: float
    seconds: float
    connections: int


@dataclass(kw_only=True)
class Connection:
    """One request at a time. `due_seconds` is when it should have been sent."""

    socket: socket.socket
    received: bytes = b""
    due_seconds: float = 0.0


@dataclass
class Generator:
    """Sends each request when it is due, on any connection that waits for no answer."""

    load: OpenLoad
    waited_ms: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    late_ms_max: float = 0.0
    seconds: float = 0.0
    has_sent_all: bool = False
    answered_in_time: Counter[str] = field(default_factory=Counter[str])

    def run(self) -> None:
        """Send all requests, then wait for the answers that are left."""
        request, count = self.load.request.encode(), round(self.load.per_second * self.load.seconds)
        opened = self._open()
        idle = deque(opened.values())
        poll = select.epoll()
        for descriptor in opened:
            poll.register(descriptor, select.EPOLLIN)
        begun_seconds, sent = time.perf_counter(), 0
        while sent < count or len(idle) < len(opened):
            now_seconds = time.perf_counter()
            while sent < count and idle:
                due_seconds = begun_seconds + sent / self.load.per_second
                if due_seconds > now_seconds:
                    break
                self.late_ms_max = max(self.late_ms_max, (now_seconds - due_seconds) * 1000)
                connection = idle.popleft()
                connection.due_seconds = due_seconds
                connection.socket.send(request)
                sent += 1
            if sent == count and not self.has_sent_all:
                self.has_sent_all = True
                self.seconds = time.perf_counter() - begun_seconds
                tell("sent")
            assert now_seconds < begun_seconds + self.load.seconds + ANSWER_SECONDS_MAX, "no answer"
            time.sleep(ROUND_SECONDS)
            for descriptor, _ in poll.poll(0):
                if self._receive(opened[descriptor]):
                    idle.append(opened[descriptor])

    def _open(self) -> dict[int, Connection]:
        opened: dict[int, Connection] = {}
        for _ in range(self.load.connections):
            connected = socket.create_connection(("127.0.0.1", self.load.port))
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            # An answer shows that the worker has accepted the connection.
            opened[connected.fileno()] = Connection(socket=connected)
            connected.send(_UNKNOWN)
            while not self._receive(opened[connected.fileno()]):
                pass
        self.waited_ms.clear()
        return opened

    def _receive(self, connection: Connection) -> bool:
        """Return whether the answer is complete."""
        connection.received += connection.socket.recv(RECEIVE_BYTES)
        received = connection.received
        head, end, body = received.partition(b"\r\n\r\n")
        if not end or len(body) < int(head.lower().partition(b"content-length: ")[2].split()[0]):
            assert received, "the server has closed a connection"
            return False
        waited_ms = (time.perf_counter() - connection.due_seconds) * 1000
        status = received[_STATUS].decode()
        self.waited_ms.setdefault(status, []).append(waited_ms)
        self.answered_in_time[status] += not self.has_sent_all
        connection.received = b""
        return True


def percentile(waited_ms: Sequence[float], share: float) -> float:
    """Return the latency that this share of requests did not exceed."""
    return round(sorted(waited_ms)[round(share * (len(waited_ms) - 1))], 1)


def tell(line: str) -> None:
    """Write one line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    """Send what standard input says."""
    generator = Generator(msgspec.json.decode(sys.stdin.readline(), type=OpenLoad))
    generator.run()
    found = {
        status: {
            "count": len(waited_ms),
            "per_second": round(generator.answered_in_time[status] / generator.seconds, 1),
            "p50_ms": percentile(waited_ms, 0.50),
            "p99_ms": percentile(waited_ms, 0.99),
            "most_ms": percentile(waited_ms, 1.0),
        }
        for status, waited_ms in generator.waited_ms.items()
    }
    told = {
        "seconds": generator.seconds,
        "processor_seconds": time.process_time(),
        "late_ms_max": generator.late_ms_max,
        "by_status": found,
    }
    tell(json.dumps(told))


if __name__ == "__main__":
    main()
