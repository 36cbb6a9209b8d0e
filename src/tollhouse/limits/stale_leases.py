"""Leases that Redis may still have for requests that have ended or were counted elsewhere.

A server that was lost and kept its data, such as a promoted replica, would count them until they
expire. The worker takes them back with its next renewal instead.
"""

from collections.abc import Iterable, Mapping, Sequence

from tollhouse.limits.types import LimitRequest


class StaleLeases:
    """Members by the key of their slots, until the time at which their lease ends."""

    def __init__(self, lease_seconds: float) -> None:
        self._lease_seconds = lease_seconds
        self._ends: dict[str, dict[str, float]] = {}

    @property
    def keys(self) -> Sequence[str]:
        """The keys with members to take back."""
        return list(self._ends)

    def add(self, keys: Iterable[str], members: Iterable[str], now_seconds: float) -> None:
        """Remember members that Redis may have entered until now."""
        ends = dict.fromkeys(members, now_seconds + self._lease_seconds)
        for key in keys:
            self._ends.setdefault(key, {}).update(ends)

    def add_requests(self, requests: Iterable[LimitRequest], now_seconds: float) -> None:
        """Remember requests whose commands were not answered, or were refused by the server."""
        for request in requests:
            self.add((slot.key for slot in request.slots), (request.member,), now_seconds)

    def members(self, key: str, held: Mapping[str, set[str]]) -> list[str]:
        """Return the members to take back: those that do not run."""
        running = held.get(key, ())
        return [member for member in self._ends.get(key, ()) if member not in running]

    def discard(self, key: str, members: Iterable[str]) -> None:
        """Forget members that were taken back."""
        ends = self._ends.get(key, {})
        for member in members:
            ends.pop(member, None)

    def expire(self, now_seconds: float) -> None:
        """Forget members whose lease has ended."""
        ends_of_keys, self._ends = self._ends, {}
        for key, ends in ends_of_keys.items():
            going_on = {member: end for member, end in ends.items() if end > now_seconds}
            if going_on:
                self._ends[key] = going_on
