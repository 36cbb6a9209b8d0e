"""What a test shows of a client, for the page that `make test-clients` writes."""

from typing import Protocol


class Shows(Protocol):
    """Note that the test shows these abilities of the client, if it passes, or their gap."""

    def __call__(self, client: str, *abilities: str, gap: str | None = None) -> None: ...
