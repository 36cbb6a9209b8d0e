"""Ports of a trial's processes: choosing free ones, and refusing those that are taken."""

import socket
from typing import Final

from tollhouse.base.errors import GatewayError, Kind

HOST: Final = "127.0.0.1"


class PortTaken(GatewayError):
    """Another program uses a port that a stopped trial had."""

    kind = Kind.CONFLICT
    code = "port_taken"
    template = (
        "Port {self.port}, which the {self.used_by} of this trial uses, is taken by another "
        "program. Stop that program and run `tollhouse up` again. The port is part of "
        "`{self.setting}` in the configuration; `tollhouse reset` starts over with free ports."
    )
    port: int
    used_by: str
    setting: str


def free(wanted: int = 0) -> int:
    """Return the wanted port if it is free, otherwise any free one."""
    for port in (wanted, 0):
        if chosen := _bound(port):
            return chosen
    message = "No port is free."
    raise OSError(message)


def require_free(port: int, *, used_by: str, setting: str) -> None:
    """Raise `PortTaken` unless the port is free. Port 0 stands for any free one."""
    if _bound(port) is None:
        raise PortTaken(port=port, used_by=used_by, setting=setting)


def _bound(port: int) -> int | None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return None
        return probe.getsockname()[1]
