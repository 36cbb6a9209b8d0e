"""Credentials for the services of others, read from where an operator keeps them.

No reason repeats a name or a content: who mistakes the one for the other must not find it in a log.
"""

import re
from collections.abc import Mapping
from pathlib import Path

BYTES_MAX = 16_384
_FORM = re.compile(r"[!-~]+")


class UnusableCredential(Exception):
    """There is no credential at the place that was named; the message says why."""


def from_variable(name: object, environment: Mapping[str, str]) -> str:
    """What a variable of the environment holds, without the blanks around it."""
    found = environment.get(name) if isinstance(name, str) else None
    if found is None:
        message = "the environment has no such variable"
        raise UnusableCredential(message)
    return _checked(found)


def from_file(path: object) -> str:
    """What a file holds, without the blanks around it."""
    if not isinstance(path, str):
        message = "expected the path of a file"
        raise UnusableCredential(message)
    try:
        with Path(path).open("rb") as file:
            return _checked(file.read(BYTES_MAX + 1).decode())
    except OSError as error:
        message = f"the file cannot be read: {error.strerror}"
        raise UnusableCredential(message) from None
    except ValueError:
        message = "the file cannot be read as text"
        raise UnusableCredential(message) from None


def _checked(text: str) -> str:
    """It will stand in a header, where a line break would begin another one."""
    credential = text.strip()
    if not credential:
        message = "what is there is empty"
    elif len(text) > BYTES_MAX or _FORM.fullmatch(credential) is None:
        message = f"what is there is not one word of at most {BYTES_MAX} visible ASCII characters"
    else:
        return credential
    raise UnusableCredential(message)
