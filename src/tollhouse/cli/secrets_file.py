"""Replacing the master secret in the configuration file, and nothing else in it."""

import os
import re
import stat
import tomllib
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from tollhouse import settings as configuration
from tollhouse.base.errors import GatewayError, Kind
from tollhouse.settings import ENVIRONMENT_PREFIX, PREVIOUS_MASTERS_MAX, SecretSettings

_SECTION: Final = re.compile(r"\s*\[\s*secrets\s*\]")
_ANY_SECTION: Final = re.compile(r"\s*\[")
_MASTER: Final = re.compile(r"""(\s*master\s*=\s*)("[^"]*"|'[^']*')""")
_PREVIOUS: Final = re.compile(r"^([ \t]*previous_masters\s*=\s*)\[[^]]*\]", re.MULTILINE)


class SecretsNotEditable(GatewayError):
    """The master secret does not stand in the file in a form that can be replaced."""

    kind = Kind.CONFLICT
    code = "secrets_not_editable"

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path} was not changed: it has no [secrets] with master and previous_masters on a "
            "line each. Change them by hand: put the present master first into previous_masters, "
            "and a new random value into master."
        )


class SecretsSetByEnvironment(GatewayError):
    """What is written into the file would not be used, or only half of it."""

    kind = Kind.CONFLICT
    code = "secrets_set_by_environment"

    def __init__(self, variable: str) -> None:
        super().__init__(
            f"Nothing was changed: the environment sets {variable}, which overrides the file. "
            f"Set {ENVIRONMENT_PREFIX}SECRETS__MASTER to a new random value and put the present "
            f"one first into {ENVIRONMENT_PREFIX}SECRETS__PREVIOUS_MASTERS='[\"PRESENT\"]', or "
            "remove both variables, so that the file alone has the secrets, and rotate again."
        )


class RotationNotFinished(GatewayError):
    """Another rotation runs, or was interrupted."""

    kind = Kind.CONFLICT
    code = "rotation_not_finished"

    def __init__(self, path: Path, beside: Path) -> None:
        super().__init__(
            f"{path} was not changed: {beside} exists, which a rotation writes before it replaces "
            "the file. If no other `tollhouse secrets rotate` is running, one was interrupted: "
            f"its secret is not in use. Remove {beside}, then rotate again."
        )


class TooManyPreviousMasters(GatewayError):
    """Earlier rotations were not finished."""

    kind = Kind.CONFLICT
    code = "too_many_previous_masters"

    def __init__(self) -> None:
        super().__init__(
            f"secrets.previous_masters already has {PREVIOUS_MASTERS_MAX} entries. Remove those "
            "that `tollhouse secrets status` shows as not needed, then rotate again."
        )


def replace_master(path: Path, new_master: str) -> SecretSettings:
    """Write `new_master` into the file and keep the present one as previous; returns both.

    The file is replaced as a whole or not at all: it may be the only copy of its secrets. It is
    read after the new one was created, so that two rotations at once cannot lose a secret.
    """
    variable = configuration.variable_of("secrets", ("master", "previous_masters"))
    if variable is not None:
        raise SecretsSetByEnvironment(variable)
    target = path.resolve()
    with _new_file_beside(target) as (beside, descriptor):
        present = configuration.load(path).secrets
        if len(present.previous_masters) >= PREVIOUS_MASTERS_MAX:
            raise TooManyPreviousMasters
        wanted = msgspec.structs.replace(
            present, master=new_master, previous_masters=[present.master, *present.previous_masters]
        )
        text = target.read_bytes().decode()
        edited = _edited(text, wanted)
        if not _is_only_change(text, edited, present, wanted):
            raise SecretsNotEditable(path)
        _write(descriptor, edited, like=target.stat())
        beside.replace(target)
    return wanted


def _edited(text: str, wanted: SecretSettings) -> str:
    """Return the text with the values of both settings in [secrets] replaced."""
    lines: list[str] = []
    is_inside = False
    has_previous = _PREVIOUS.search(text) is not None
    for line in text.splitlines(keepends=True):
        if _ANY_SECTION.match(line):
            is_inside = _SECTION.match(line) is not None
        lines.append(_edited_line(line, wanted, has_previous=has_previous) if is_inside else line)
    return "".join(lines)


def _edited_line(line: str, wanted: SecretSettings, *, has_previous: bool) -> str:
    """Return a line with another value; comments and line ends stay."""
    previous = _quoted(wanted.previous_masters)
    if found := _PREVIOUS.match(line):
        return f"{found[1]}{previous}{line[found.end() :]}"
    if (found := _MASTER.match(line)) is None:
        return line
    changed = f"{found[1]}{_quoted(wanted.master)}{line[found.end() :]}"
    if has_previous:
        return changed
    end = "\r\n" if line.endswith("\r\n") else "\n"
    return changed.removesuffix(end) + f"{end}previous_masters = {previous}{end}"


def _is_only_change(
    text: str, edited: str, present: SecretSettings, wanted: SecretSettings
) -> bool:
    """Whether the file had the present secrets and now differs by the wanted ones alone."""
    before = _tree(text)
    after = _tree(edited)
    if before is None or after is None or not isinstance(before.get("secrets"), dict):
        return False
    if _masters(before) != (present.master, present.previous_masters):
        return False
    expected = before["secrets"] | {
        "master": wanted.master,
        "previous_masters": wanted.previous_masters,
    }
    return after == before | {"secrets": expected}


def _tree(text: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None


def _masters(tree: dict[str, Any]) -> tuple[object, object]:
    secrets = tree["secrets"]
    return secrets.get("master"), secrets.get("previous_masters", [])


@contextmanager
def _new_file_beside(path: Path) -> Generator[tuple[Path, int]]:
    """Create a file that no other rotation has created; it is removed unless it was moved."""
    beside = path.with_name(f"{path.name}.rotated")
    try:
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, stat.S_IRUSR)
    except FileExistsError:
        raise RotationNotFinished(path, beside) from None
    try:
        yield beside, descriptor
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    finally:
        os.close(descriptor)


def _write(descriptor: int, text: str, *, like: os.stat_result) -> None:
    """Fill a new file, which gets the mode and owner of another."""
    with os.fdopen(descriptor, "wb", closefd=False) as file:
        os.fchmod(descriptor, stat.S_IMODE(like.st_mode))
        os.fchown(descriptor, like.st_uid, like.st_gid)
        file.write(text.encode())
        file.flush()
        os.fsync(descriptor)


def _quoted(value: str | list[str]) -> str:
    """JSON's strings and lists of them are TOML's."""
    return msgspec.json.encode(value).decode()
