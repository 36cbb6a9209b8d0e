"""Replacing the master secret in the configuration file without changing the rest of it."""

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

SECRET_BYTES: Final = 48
_SECTION: Final = re.compile(r"\s*\[\s*secrets\s*\]")
_ANY_SECTION: Final = re.compile(r"\s*\[")
_MASTER: Final = re.compile(r"""(\s*master\s*=\s*)("[^"]*"|'[^']*')""")
_PREVIOUS: Final = re.compile(r"^([ \t]*previous_masters\s*=\s*)\[[^]]*\]", re.MULTILINE)


class SecretsNotEditable(GatewayError):
    """The file has the master secret in a form that cannot be replaced."""

    kind = Kind.CONFLICT
    code = "secrets_not_editable"
    template = (
        "{self.path} was not changed: it has no [secrets] with master and previous_masters on one "
        "line each. Edit it by hand: put the present master first into previous_masters, and a new "
        "random value into master."
    )
    path: Path


class SecretsSetByEnvironment(GatewayError):
    """Variables override the secrets of the file, so that a change of it would have no effect."""

    kind = Kind.CONFLICT
    code = "secrets_set_by_environment"
    template = (
        "Nothing was changed: the environment sets {self.variable}, which overrides the file. "
        f"Set {ENVIRONMENT_PREFIX}SECRETS__MASTER to a new random value and put the present "
        f"one first into {ENVIRONMENT_PREFIX}SECRETS__PREVIOUS_MASTERS='[\"PRESENT\"]', or "
        "remove both variables, so that the file alone has the secrets, and rotate again."
    )
    variable: str


class RotationNotFinished(GatewayError):
    """Another rotation is running, or was interrupted."""

    kind = Kind.CONFLICT
    code = "rotation_not_finished"
    template = (
        "{self.path} was not changed: {self.beside} exists, which a rotation writes before it "
        "replaces the file. If no other `tollhouse secrets rotate` is running, one was "
        "interrupted: its secret is not in use. Remove {self.beside}, then rotate again."
    )
    path: Path
    beside: Path


class TooManyPreviousMasters(GatewayError):
    """Earlier rotations were not completed."""

    kind = Kind.CONFLICT
    code = "too_many_previous_masters"
    template = (
        f"secrets.previous_masters already has {PREVIOUS_MASTERS_MAX} entries. Remove those "
        "that `tollhouse secrets status` shows as not needed, then rotate again."
    )


def replace_master(path: Path, new_master: str) -> SecretSettings:
    """Write `new_master` into the file, keep the present one as previous, and return both.

    The file is replaced atomically, since it may be the only copy of its secrets. It is read after
    the new file was created, so that two rotations at once cannot lose a secret.
    """
    variable = configuration.overriding_variable("secrets", ("master", "previous_masters"))
    if variable is not None:
        raise SecretsSetByEnvironment(variable=variable)
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
            raise SecretsNotEditable(path=path)
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
    """Return the line with the new value, and its comment and line end."""
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
    """Return whether the edit replaced exactly the present secrets by the wanted ones."""
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
    """Create a file beside `path`. Raises if it exists; an exception in the block removes it."""
    beside = path.with_name(f"{path.name}.rotated")
    try:
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, stat.S_IRUSR)
    except FileExistsError:
        raise RotationNotFinished(path=path, beside=beside) from None
    try:
        yield beside, descriptor
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    finally:
        os.close(descriptor)


def _write(descriptor: int, text: str, *, like: os.stat_result) -> None:
    """Write the text, with the mode and owner of another file, and flush it to disk."""
    with os.fdopen(descriptor, "wb", closefd=False) as file:
        os.fchmod(descriptor, stat.S_IMODE(like.st_mode))
        os.fchown(descriptor, like.st_uid, like.st_gid)
        file.write(text.encode())
        file.flush()
        os.fsync(descriptor)


def _quoted(value: str | list[str]) -> str:
    """Return the value as TOML, which JSON strings and lists of them are too."""
    return msgspec.json.encode(value).decode()
