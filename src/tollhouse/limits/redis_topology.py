"""Which Redis server counts which keys: the answers of Sentinels and cluster nodes, read."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from redis.crc import REDIS_CLUSTER_HASH_SLOTS, key_slot
from redis.exceptions import InvalidResponse

HASH_SLOTS: Final = REDIS_CLUSTER_HASH_SLOTS

Address = tuple[str, int]
"""A host and a port."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SlotRange:
    """Hash slots that one master has. The claim with the highest epoch is the current one."""

    address: Address
    epoch: int
    slots: range


def hash_slot(key: str) -> int:
    """Return the slot of a key: that of its part in braces, if it has one."""
    return key_slot(key.encode())


def probe_key(slots: Sequence[int]) -> str:
    """Return a key in one of `slots`."""
    owned, number = frozenset(slots), 0
    while hash_slot(key := f"tollhouse:probe:{number}") not in owned:
        number += 1
    return key


def read_sentinel(answer: Sequence[bytes]) -> SlotRange:
    """Read an answer to SENTINEL MASTER: names and values in turns."""
    try:
        told = dict(zip(answer[::2], answer[1::2], strict=True))
        address = (told[b"ip"].decode(), int(told[b"port"]))
        epoch = int(told[b"config-epoch"])
    except (AttributeError, KeyError, TypeError, ValueError):
        message = "The answer is not one of a Sentinel."
        raise InvalidResponse(message) from None
    return SlotRange(address=address, epoch=epoch, slots=range(HASH_SLOTS))


def read_nodes(answer: bytes, asked: Address, *, by_name: bool) -> list[SlotRange]:
    """Read an answer to CLUSTER NODES of the node at `asked`, one line per node.

    `by_name` prefers the host names that nodes announce, as certificates need them.
    """
    claims: list[SlotRange] = []
    try:
        for line in answer.decode().splitlines():
            _, endpoint, flags, _, _, _, epoch, _, *slots = line.split()
            if "master" not in flags.split(",") or "noaddr" in flags:
                continue
            address = _address(endpoint, asked, by_name=by_name)
            for part in slots:
                if not part.startswith("["):  # a slot on its way to another node
                    first, _, last = part.partition("-")
                    owned = range(int(first), int(last or first) + 1)
                    claims.append(SlotRange(address=address, epoch=int(epoch), slots=owned))
    except (AttributeError, ValueError):
        message = "The answer is not one of a cluster node."
        raise InvalidResponse(message) from None
    return claims


def _address(endpoint: str, asked: Address, *, by_name: bool) -> Address:
    """Read `IP:PORT@BUS,NAME`. A node that does not know its address leaves it out."""
    network, *names = endpoint.split(",")
    host, _, port = network.partition("@")[0].rpartition(":")
    name = names[0] if names and "=" not in names[0] else ""
    return ((by_name and name) or host or asked[0], int(port))


def owners(claims: Iterable[SlotRange]) -> Mapping[Address, Sequence[int]]:
    """Return the slots of each server: the highest epoch wins, as it does among the servers."""
    current: list[SlotRange | None] = [None] * HASH_SLOTS
    for claim in claims:
        for slot in claim.slots:
            known = current[slot]
            if known is None or claim.epoch > known.epoch:
                current[slot] = claim
    owned: dict[Address, list[int]] = {}
    for slot, claim in enumerate(current):
        if claim is not None:
            owned.setdefault(claim.address, []).append(slot)
    return owned
