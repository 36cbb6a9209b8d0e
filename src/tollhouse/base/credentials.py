"""Credentials for upstreams, secrets of the gateway and certificates, from variables and files.

No message repeats a name or a content: an operator may confuse the two, and messages are logged.
"""

import re
import ssl
from collections.abc import Mapping
from pathlib import Path

BYTES_MAX = 16_384
CERTIFICATES_BYTES_MAX = 1_048_576
_FORM = re.compile(r"[!-~]+")


class UnusableCredential(Exception):
    """A credential cannot be read. The message says why."""


class AbsentCredential(UnusableCredential):
    """The environment lacks the variable, or the file cannot be opened."""


def from_variable(name: object, environment: Mapping[str, str]) -> str:
    """Return the stripped value of an environment variable. Raises `UnusableCredential`."""
    found = environment.get(name) if isinstance(name, str) else None
    if found is None:
        message = "the environment has no such variable"
        raise AbsentCredential(message)
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


def certificates_of_file(path: object) -> str:
    """Return the text of a PEM file with one certificate or more. Raises `UnusableCredential`.

    Only ASCII is kept: comments may have more, and OpenSSL takes nothing else as text.
    """
    content = _text(path, CERTIFICATES_BYTES_MAX).encode()
    if len(content) > CERTIFICATES_BYTES_MAX:
        message = f"the file has more than {CERTIFICATES_BYTES_MAX} bytes"
        raise UnusableCredential(message)
    text = content.decode("ascii", "ignore")
    try:
        # An empty text would stand for the authorities of the system.
        ssl.create_default_context(cadata=text or "-")
    except ssl.SSLError:
        message = "the file is not one of certificates in PEM form"
        raise UnusableCredential(message) from None
    return text


def _text(path: object, bytes_max: int = BYTES_MAX) -> str:
    if not isinstance(path, str):
        message = "expected the path of a file"
        raise UnusableCredential(message)
    try:
        with Path(path).open("rb") as file:
            return file.read(bytes_max + 1).decode()
    except OSError as error:
        message = f"the file cannot be read: {error.strerror}"
        raise AbsentCredential(message) from None
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
