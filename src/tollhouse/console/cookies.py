"""The cookies of the console: each is for one path, and no script can read them."""

from dataclasses import dataclass
from typing import Final, Literal

from tollhouse.api.head import Head

_SECURE_PREFIX: Final = "__Secure-"


@dataclass(frozen=True, kw_only=True, slots=True)
class BrowserCookie:
    """A cookie: `path` as browsers see it, and sent over TLS alone if `is_secure`."""

    plain_name: str
    path: str
    is_secure: bool
    same_site: Literal["Strict", "Lax"]

    @property
    def name(self) -> str:
        """The name of the cookie; browsers accept its prefix only over TLS."""
        return f"{_SECURE_PREFIX}{self.plain_name}" if self.is_secure else self.plain_name

    def header(self, value: str, *, seconds: int) -> tuple[str, str]:
        """Return the header that sets the cookie."""
        site = f"SameSite={self.same_site}" + ("; Secure" if self.is_secure else "")
        attributes = f"Path={self.path}; Max-Age={seconds}; HttpOnly; {site}"
        return ("set-cookie", f"{self.name}={value}; {attributes}")

    def deleting_header(self) -> tuple[str, str]:
        """Return the header that deletes the cookie."""
        return self.header("", seconds=0)

    def read(self, head: Head) -> str | None:
        """Return the value that was sent; None if it is absent, or there are two of that name.

        A page of a neighbouring host can add a second one, and its session must not be taken.
        """
        pairs = (
            pair.strip().partition("=")
            for line in head.values(b"cookie")
            for pair in line.decode("latin-1").split(";")
        )
        values = [value for found, _, value in pairs if found == self.name]
        return values[0] if len(values) == 1 else None
