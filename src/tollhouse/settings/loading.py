"""Reading the configuration: a TOML file, overridden by variables of the environment.

A file is not needed if the environment has all settings.
"""

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import parse_qs, urlsplit

import msgspec
from msgspec import Struct

from tollhouse.base import credentials
from tollhouse.base.credentials import UnusableCredential
from tollhouse.base.errors import did_you_mean
from tollhouse.base.policies import DEMONSTRATION_JUDGE
from tollhouse.settings import secret_files
from tollhouse.settings.secret_files import ReportAbsent
from tollhouse.settings.section import InvalidSettings, Section
from tollhouse.settings.sections import SecretSettings, Settings
from tollhouse.settings.sign_in import check_public_url

CONFIG_PATH_VARIABLE: Final = "TOLLHOUSE_CONFIG"
ENVIRONMENT_PREFIX: Final = "TOLLHOUSE_"
DEFAULT_CONFIG_PATH: Final = Path("tollhouse.toml")
SECRET_LENGTH_MIN: Final = 32
FILE_BYTES_MAX: Final = 1_048_576
_UNKNOWN: Final = re.compile(r"unknown field `(\w+)`")
_AT: Final = re.compile(r"at `\$\.(\w+)(?:\.(\w+))?")
RENAMED_FIELDS: Final = {"believed_keys_max": "keys.cache_size"}
"""The present names of settings that were renamed."""


def load(
    path: Path | None = None,
    environment: Mapping[str, str] = os.environ,
    *,
    report_absent: ReportAbsent | None = None,
) -> Settings:
    """Return the configuration of a file and the environment.

    Raises `InvalidSettings` unless all of it is valid. With `report_absent`, a secret that this
    machine lacks is reported instead, and a generated one stands in for it.
    """
    chosen = path or Path(environment.get(CONFIG_PATH_VARIABLE, str(DEFAULT_CONFIG_PATH)))
    tree = read_tables(chosen, environment)
    secret_files.read_into(tree, report_absent)
    try:
        settings = msgspec.convert(tree, Settings, strict=True)
    except msgspec.ValidationError as error:
        is_without_file = _is_without_file(chosen, environment)
        place = f"the environment, without {chosen}" if is_without_file else str(chosen)
        place = _variable_at_fault(str(error), environment) or place
        message = f"{place}: {error}{_suggestion(str(error))}"
        raise InvalidSettings(message) from None
    _check_secrets(settings.secrets)
    _check_judge(settings)
    check_public_url(settings.oidc, settings.server.public_url)
    _check_root_certificates(settings, report_absent)
    backends = {
        name: _with_certificates(
            name, _with_credential(name, backend, environment, report_absent), report_absent
        )
        for name, backend in settings.backends.items()
    }
    return msgspec.structs.replace(settings, backends=backends)


def read_tables(path: Path, environment: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """Return the tables of a file with the variables of the environment in them, unchecked."""
    tree = {} if _is_without_file(path, environment) else _read(path)
    _overlay(tree, environment)
    return tree


def _is_without_file(path: Path, environment: Mapping[str, str]) -> bool:
    """Return whether the environment alone is the configuration."""
    return (
        path == DEFAULT_CONFIG_PATH
        and not path.exists()
        and any(_parse_variable(name) is not None for name in environment)
    )


def _read(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            content = file.read(FILE_BYTES_MAX + 1)
        if len(content) > FILE_BYTES_MAX:
            message = f"{path}: too large. A configuration has at most {FILE_BYTES_MAX} bytes."
            raise InvalidSettings(message)
        return tomllib.loads(content.decode())
    except FileNotFoundError:
        message = (
            f"{path}: no such file. `tollhouse up` starts a trial here, `tollhouse init` writes a "
            "configuration, and --config names one that is elsewhere."
        )
        raise InvalidSettings(message) from None
    except (OSError, ValueError, RecursionError) as error:
        message = f"{path}: {error}"
        raise InvalidSettings(message) from None


def _overlay(tree: dict[str, Any], environment: Mapping[str, str]) -> None:
    """Set `server.port` for `TOLLHOUSE_SERVER__PORT=9000`. Values are TOML, otherwise text.

    A secret replaces what the file says of it in either form; two variables for one secret stay,
    and are refused later.
    """
    variables = {name: _parse_variable(name) for name in sorted(environment)}
    for name, setting in variables.items():
        if setting is None:
            continue
        section, field = setting
        is_alone = (section, secret_files.other_form(field)) not in variables.values()
        table = tree.setdefault(section, {})
        if isinstance(table, dict):
            settings = cast("dict[str, Any]", table)
            if is_alone:
                settings.pop(secret_files.other_form(field), None)
            settings[field] = _toml_value(environment[name])


def overriding_variable(
    section: str, fields: tuple[str, ...], environment: Mapping[str, str] = os.environ
) -> str | None:
    """Return a variable of the environment that overrides one of these settings, or None."""
    wanted = {(section, name) for field in fields for name in (field, secret_files.name(field))}
    return next((name for name in environment if _parse_variable(name) in wanted), None)


def _variable_at_fault(message: str, environment: Mapping[str, str]) -> str | None:
    """Return the variable that set what a message of the decoder is about, or None."""
    unknown, at = _UNKNOWN.search(message), _AT.search(message)
    names = [each for each in (at and at[1], at and at[2], unknown and unknown[1]) if each]
    wanted = f"{ENVIRONMENT_PREFIX}{'__'.join(names[:2])}".upper()
    is_whole = len(names) > 1
    return next(
        (
            name
            for name in sorted(environment)
            if name == wanted or (not is_whole and name.startswith(f"{wanted}__"))
        ),
        None,
    )


def _parse_variable(variable: str) -> tuple[str, str] | None:
    if not variable.startswith(ENVIRONMENT_PREFIX) or "__" not in variable:
        return None
    section, _, field = variable.removeprefix(ENVIRONMENT_PREFIX).lower().partition("__")
    return section, field


def _toml_value(text: str) -> Any:  # noqa: ANN401 - any TOML value
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        return text


def _suggestion(message: str) -> str:
    """Return a hint for an unknown name: its new name, or the most similar known name."""
    if "unknown field" not in message:
        return ""
    unknown = message.split("`")[1]
    if unknown in RENAMED_FIELDS:
        return f". Set {RENAMED_FIELDS[unknown]} instead."
    known = [name for section in _sections() for name in section.__struct_fields__]
    return did_you_mean(unknown, known)


def _sections() -> list[type[Struct]]:
    return [Settings, *Section.__subclasses__()]


def _with_credential(
    name: str,
    backend: dict[str, Any],
    environment: Mapping[str, str],
    report_absent: ReportAbsent | None,
) -> dict[str, Any]:
    """Return the backend with its `api_key` in place of where to find it."""
    place = f"backends.{msgspec.json.encode(name).decode()}"
    sources = [source for source in ("api_key_variable", "api_key_file") if source in backend]
    if "api_key" in backend or len(sources) > 1:
        message = (
            f"{place}: a credential must not be in this file. Say where it is, by either "
            'api_key_variable = "NAME_OF_VARIABLE" or api_key_file = "/path/of/file".'
        )
        raise InvalidSettings(message)
    rest = {field: value for field, value in backend.items() if field not in sources}
    for source in sources:
        try:
            rest["api_key"] = (
                credentials.from_variable(backend[source], environment)
                if source == "api_key_variable"
                else credentials.from_file(backend[source])
            )
        except UnusableCredential as error:
            secret_files.refuse_or_report(f"{place}.{source}", error, report_absent)
    return rest


def _with_certificates(
    name: str, backend: dict[str, Any], report_absent: ReportAbsent | None
) -> dict[str, Any]:
    """Return the backend with the `ca_certificates` of its `ca_file` in place of the path."""
    place = f"backends.{msgspec.json.encode(name).decode()}"
    if "ca_certificates" in backend:
        message = f'{place}.ca_certificates: name a file instead, by ca_file = "/path/of/file"'
        raise InvalidSettings(message)
    if "ca_file" not in backend:
        return backend
    rest = {field: value for field, value in backend.items() if field != "ca_file"}
    try:
        rest["ca_certificates"] = credentials.certificates_of_file(backend["ca_file"])
    except UnusableCredential as error:
        secret_files.refuse_or_report(f"{place}.ca_file", error, report_absent)
    return rest


def _check_root_certificates(settings: Settings, report_absent: ReportAbsent | None) -> None:
    """Raise for an `sslrootcert` that the driver could not read: it would not say which file."""
    database = settings.database
    for field, url in (("url", database.url), ("replica_url", database.replica_url)):
        for path in parse_qs(urlsplit(url or "").query).get("sslrootcert", []):
            try:
                credentials.certificates_of_file(path)
            except UnusableCredential as error:
                place = f"database.{field}: sslrootcert"
                secret_files.refuse_or_report(place, error, report_absent)


def _check_secrets(secrets: SecretSettings) -> None:
    """Raise for secrets that are too short, repetitive or equal: they would be guessable."""
    named = {
        "secrets.master": secrets.master,
        **{
            f"secrets.previous_masters[{index}]": value
            for index, value in enumerate(secrets.previous_masters)
        },
    }
    for name, value in named.items():
        if _is_weak(value):
            message = (
                f"{name}: too weak. Use at least {SECRET_LENGTH_MIN} random characters; "
                "`tollhouse init` generates them."
            )
            raise InvalidSettings(message)
    if len(set(named.values())) != len(named):
        message = "secrets: the master secrets must differ from each other"
        raise InvalidSettings(message)


def _check_judge(settings: Settings) -> None:
    """Raise for a judge that only knows the examples of a trial."""
    model = (settings.judge or {}).get("model")
    if model == DEMONSTRATION_JUDGE and not settings.ledger.is_sandbox:
        message = (
            "judge.model: the demonstration judge decides by patterns, for trials only. "
            "Name a model that can judge (docs/guides/judging.md)."
        )
        raise InvalidSettings(message)


def _is_weak(secret: str) -> bool:
    """Return whether a secret is too short, has too few different characters, or repeats."""
    periods = range(1, len(secret) // 2 + 1)
    return (
        len(secret.encode()) < SECRET_LENGTH_MIN
        or len(set(secret)) < SECRET_LENGTH_MIN // 4
        or any(secret[period:] == secret[:-period] for period in periods)
    )
