"""Credentials for upstreams and secrets of the gateway, read from the environment or from files.

No message repeats a name or a content: an operator may confuse the two, and messages are logged.
"""

import re
from collections.abc import Mapping
from pathlib import Path

BYTES_MAX = 16_384
_FORM = re.compile(r"[!-~]+")


class UnusableCredential(Exception):
    """A credential cannot be read. The message says why."""


def from_variable(name: object, environment: Mapping[str, str]) -> str:
    """Return the stripped value of an environment variable. Raises `UnusableCredential`."""
    found = environment.get(name) if isinstance(name, str) else None
    if found is None:
        message = "the environment has no such variable"
        raise UnusableCredential(message)
    return _checked(found)


def from_file(path: object) -> str:
    """Return the stripped content of a file. Raises `UnusableCredential`."""
    return _checked(_text(path))


def lines_of_file(path: object) -> list[str]:
    """Return the credentials of a file that has one per line. Raises `UnusableCredential`."""
    text = _text(path)
    if len(text) > BYTES_MAX:
        message = f"the file has more than {BYTES_MAX} characters"
        raise UnusableCredential(message)
    return [_checked(line) for line in text.splitlines() if line.strip()]


def _text(path: object) -> str:
    if not isinstance(path, str):
        message = "expected the path of a file"
        raise UnusableCredential(message)
    try:
        with Path(path).open("rb") as file:
            return file.read(BYTES_MAX + 1).decode()
    except OSError as error:
        message = f"the file cannot be read: {error.strerror}"
        raise UnusableCredential(message) from None
    except ValueError:
        message = "the file cannot be read as text"
        raise UnusableCredential(message) from None


def _checked(text: str) -> str:
    """Return the stripped text. Raises if it cannot be a header value, for example a line break."""
    credential = text.strip()
    if not credential:
        message = "the credential is empty"
    elif len(text) > BYTES_MAX or _FORM.fullmatch(credential) is None:
        message = f"the credential is not one word of at most {BYTES_MAX} visible ASCII characters"
    else:
        return credential
    raise UnusableCredential(message)
