"""Where the gateway is, and the Admin key to use there."""

import os
import re
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import click
import msgspec
from msgspec import Struct

from tollhouse.base.errors import GatewayError, Kind

URL_VARIABLE: Final = "TOLLHOUSE_URL"
KEY_VARIABLE: Final = "TOLLHOUSE_ADMIN_KEY"
DEFAULT: Final = "default"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class Login(Struct, frozen=True, kw_only=True):
    """The address of a gateway, without a path, and an Admin key."""

    url: str
    admin_key: str


class ProfileUnusable(GatewayError):
    """The file of a profile is no profile, or others can read it."""

    kind = Kind.UNAVAILABLE
    code = "profile_unusable"
    template = "{self.path} {self.fault}. Run `tollhouse login` again."
    path: Path
    fault: str


def from_variables() -> Login | None:
    """Return the login of the environment, or None. Raises `UsageError` if a half is missing."""
    url, key = _variable(URL_VARIABLE), _variable(KEY_VARIABLE)
    if not url and not key:
        return None
    if not url or not key:
        message = f"Set both {URL_VARIABLE} and {KEY_VARIABLE}, or neither."
        raise click.UsageError(message)
    return Login(url=address(url), admin_key=key)


def read(profile: str | None) -> Login | None:
    """Return the login of a profile, or None if the default one was never written."""
    path = place(profile or DEFAULT)
    try:
        if path.stat().st_mode & 0o077:
            raise ProfileUnusable(path=path, fault="can be read by others")
        return msgspec.json.decode(path.read_bytes(), type=Login)
    except FileNotFoundError:
        if profile is None:
            return None
        message = f"There is no profile {profile!r}. Run `tollhouse login --profile {profile}`."
        raise click.UsageError(message) from None
    except msgspec.MsgspecError:
        raise ProfileUnusable(path=path, fault="is not a profile") from None


def place(profile: str) -> Path:
    """Return the file of a profile."""
    if _NAME.fullmatch(profile) is None:
        message = f"{profile!r} is not the name of a profile. Use letters, digits, '.', '_', '-'."
        raise click.UsageError(message)
    home = _variable("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(home) / "tollhouse" / f"{profile}.json"


def address(url: str) -> str:
    """Return the address of a gateway, without a path that SDKs need."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        message = f"{url!r} is not the address of a gateway like https://gateway.example.com."
        raise click.UsageError(message)
    return url.rstrip("/").removesuffix("/v1").removesuffix("/manage")


def _variable(name: str) -> str:
    return os.environ.get(name, "")  # noqa: TID251 - no setting of a deployment
