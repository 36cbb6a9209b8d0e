"""A Redis of a test's own, which it may flush, fill, stop and kill."""

import shutil
import signal
import socket
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import redis

ENDING_SECONDS_MAX = 120.0


@dataclass
class RedisServer:
    """Its port stays the same from one life to the next; what it knew does not."""

    port: int
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Returns when it accepts connections."""
        program = shutil.which("redis-server")
        assert program is not None, "redis-server is not installed"
        self._process = subprocess.Popen(
            [program, "--port", str(self.port), "--bind", "127.0.0.1", "--save", ""],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if b"Ready to accept connections" in line:
                return
        message = "redis-server has ended"
        raise AssertionError(message)

    def kill(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate(timeout=ENDING_SECONDS_MAX)

    def pause(self) -> None:
        """Accept, as the kernel does for it, and answer nothing."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    @contextmanager
    def client(self) -> Generator[Any]:
        """Somebody who looks at what is in it; the library's types are only half there."""
        opened = redis.Redis(port=self.port, decode_responses=True, protocol=2)
        yield opened
        opened.close()


def command_words(packed: bytes) -> list[str]:
    """Read a command, an array of strings, by their lengths."""
    words: list[str] = []
    at = packed.index(b"\r\n") + 2
    while at < len(packed):
        end = packed.index(b"\r\n", at)
        start, length = end + 2, int(packed[at + 1 : end])
        words.append(packed[start : start + length].decode())
        at = start + length + 2
    return words


@contextmanager
def running_redis() -> Generator[RedisServer]:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        server = RedisServer(probe.getsockname()[1])
    server.start()
    try:
        yield server
    finally:
        server.kill()
