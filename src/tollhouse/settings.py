"""The one reader of configuration: a TOML file, with the environment laid over it.

Every value has a bound or a default, except secrets: these have no default, and weak ones
are refused before anything listens.
"""

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from tollhouse.base import credentials
from tollhouse.base.credentials import UnusableCredential
from tollhouse.base.errors import ERROR_PAGES_PATH
from tollhouse.base.shares import ORGANIZATION_SHARE
from tollhouse.base.suggestions import did_you_mean

CONFIG_PATH_VARIABLE = "TOLLHOUSE_CONFIG"
ENVIRONMENT_PREFIX = "TOLLHOUSE_"
DEFAULT_CONFIG_PATH = Path("tollhouse.toml")
SECRET_LENGTH_MIN = 32
PREVIOUS_MASTERS_MAX = 3
FILE_BYTES_MAX = 1_048_576
_PEPPER_VERSION = re.compile(r"[1-9][0-9]{0,4}", re.ASCII)
_PEPPER_VERSION_MAX = 32_767  # a smallint
# A password whose `@`, `/`, `?` or `#` is not encoded would be read as host, port or path, and
# repeated in the driver's complaint about them.
_HOST = r"(?:[A-Za-z0-9._%-]*|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?"
_OPTION = r"[A-Za-z_]+=[^\s@?#&]*"
_DATABASE_URL = re.compile(
    r"postgres(?:ql)?://"
    r"(?:[^\s@/?#\[\]]*@)?"
    rf"{_HOST}(?:,{_HOST})*"
    r"(?:/[^\s@/?#]*)?"
    rf"(?:\?{_OPTION}(?:&{_OPTION})*)?",
    re.ASCII,
)
_REDIS_URL = re.compile(
    rf"rediss?://(?:[^\s@/?#\[\]]*@)?{_HOST}(?:/[0-9]{{0,3}})?(?:\?{_OPTION}(?:&{_OPTION})*)?",
    re.ASCII,
)
# Without a credential, which the exporter would repeat in its complaints.
_COLLECTOR_URL = re.compile(rf"https?://{_HOST}(?:/[^\s@?#]*)?", re.ASCII)
# It becomes part of answers, so nothing may stand in it that is no part of a plain address.
_PUBLIC_URL = re.compile(
    r"https?://(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?(?:/[A-Za-z0-9._~/%-]*)?",
    re.ASCII,
)
CUSTOMER_HEADER_PATTERN = r"\A[Xx]-[A-Za-z0-9-]{1,62}\Z"

Port = Annotated[int, Meta(ge=0, le=65535)]
Seconds = Annotated[float, Meta(gt=0, le=86400)]
PositiveInt = Annotated[int, Meta(ge=1)]


class InvalidSettings(Exception):
    """The configuration cannot be used; the message says which line to change."""


BODIES_TO_BODY_BYTES = 8
"""A text that is not ASCII takes up to six bytes of memory for each of its own, and an eighth of
what a worker has is kept for small bodies."""


def _refuse_other_address(name: str, value: str | None) -> None:
    if value is not None and _PUBLIC_URL.fullmatch(value) is None:
        message = (
            f"{name}: not of the form https://HOST or https://HOST:PORT/PATH. Leave out user,"
            " password, '?' and '#'."
        )
        raise InvalidSettings(message)


class Section(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of the configuration file. Its text has no values: some of them are secret."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"


class DatabaseSettings(Section, frozen=True, kw_only=True):
    """PostgreSQL, the only truth. Each worker has two pools of connections.

    `pool_size` is for inference: key lookup, admission, settlement, policies, heartbeat, records.
    `admin_pool_size` is for Admin routes, reports and maintenance, so that inference never waits
    for them. A statement is cancelled after `statement_seconds`, on an Admin route after
    `admin_statement_seconds`, in a report after `report_statement_seconds`.
    """

    url: str
    pool_size: Annotated[int, Meta(ge=1, le=500)] = 10
    admin_pool_size: Annotated[int, Meta(ge=1, le=500)] = 4
    acquire_seconds: Seconds = 5.0
    statement_seconds: Seconds = 10.0
    admin_statement_seconds: Seconds = 10.0
    report_statement_seconds: Seconds = 20.0

    def __post_init__(self) -> None:
        if _DATABASE_URL.fullmatch(self.url) is None:
            message = (
                "database.url: not of the form postgresql://ROLE:PASSWORD@HOST:5432/DATABASE. "
                "In role and password, write '@' as %40, '/' as %2F, '?' as %3F, '#' as %23."
            )
            raise InvalidSettings(message)


class SecretSettings(Section, frozen=True, kw_only=True):
    """What an attacker must not have. `peppers` maps a version to its secret.

    Keys are minted with the highest pepper version that every live worker accepts, so a
    new version is added here, rolled out, and used without a further step. In the same way
    `master` is used once every live worker accepts it. Until it is removed, each of
    `previous_masters` still opens what it encrypted or signed.
    """

    master: str
    previous_masters: Annotated[list[str], Meta(max_length=PREVIOUS_MASTERS_MAX)] = []
    peppers: Annotated[dict[str, str], Meta(min_length=1, max_length=8)]

    def master_bytes(self) -> list[bytes]:
        """The accepted master secrets, the newest first."""
        return [secret.encode() for secret in (self.master, *self.previous_masters)]

    def pepper_bytes(self) -> dict[int, bytes]:
        """Peppers by version, oldest first."""
        return {
            version: self.peppers[str(version)].encode()
            for version in sorted(map(int, self.peppers))
        }


class ServerSettings(Section, frozen=True, kw_only=True):
    """Listeners, workers and the bounds of the edge.

    `public_url` is the address at which clients reach the gateway. It begins the addresses of the
    gateway's own pages in answers; the Host header of a request never does.
    A connection whose peer does not read for `write_seconds` is cut, and its request settled.
    A worker holds at most `connections_max` connections, and fewer where the system allows it too
    few descriptors; beyond that it closes the longest idle one for each new one, or else the one
    whose body has made no progress for longest. A worker whose event loop does not run for
    `worker_silence_seconds` is killed and replaced.
    `bodies_bytes_max` bounds the memory that the bodies of requests in flight take in one worker,
    at least eight times `body_bytes_max`; all bodies of one organization share a quarter of
    it. `bodies_per_key_max` and `bodies_per_organization_max` bound the bodies above 64 KiB that
    one worker reads and parses at once.
    Of one organization's Admin requests each worker runs `admin_requests_per_organization` at
    once. Further ones wait up to `admin_wait_seconds` and are then refused with 429: waiting costs
    the worker nothing, and a client that tries again at once would cost it much.
    """

    host: str = "127.0.0.1"
    port: Port = 8080
    public_url: str | None = None
    probe_host: str = "127.0.0.1"
    probe_port: Port = 8081
    workers: Annotated[int, Meta(ge=1, le=256)] = 2
    drain_seconds: Seconds = 120.0
    keep_alive_seconds: Seconds = 65.0
    connections_max: Annotated[int, Meta(ge=16, le=1_000_000)] = 10_000
    worker_silence_seconds: Annotated[float, Meta(ge=5, le=3600)] = 15.0
    header_bytes_max: Annotated[int, Meta(ge=1024, le=1_048_576)] = 65_536
    header_seconds: Seconds = 10.0
    body_bytes_max: Annotated[int, Meta(ge=1024, le=1_073_741_824)] = 33_554_432
    body_seconds: Seconds = 30.0
    write_seconds: Seconds = 30.0
    bodies_bytes_max: Annotated[int, Meta(ge=1_048_576, le=1_099_511_627_776)] = 268_435_456
    bodies_per_key_max: Annotated[int, Meta(ge=1, le=100_000)] = 32
    bodies_per_organization_max: Annotated[int, Meta(ge=1, le=100_000)] = 64
    admin_requests_per_organization: Annotated[int, Meta(ge=1, le=1_000)] = 2
    admin_wait_seconds: Seconds = 5.0

    def __post_init__(self) -> None:
        _refuse_other_address("server.public_url", self.public_url)
        needed = BODIES_TO_BODY_BYTES * self.body_bytes_max
        if self.bodies_bytes_max < needed:
            message = (
                f"server.bodies_bytes_max: {self.bodies_bytes_max} is too low. It must be at least"
                f" {BODIES_TO_BODY_BYTES} times server.body_bytes_max, which is {needed}, or a body"
                " of that size could never be parsed. Raise it, or lower server.body_bytes_max."
            )
            raise InvalidSettings(message)


class KeySettings(Section, frozen=True, kw_only=True):
    """How keys are found and believed."""

    customer_header: Annotated[str, Meta(pattern=CUSTOMER_HEADER_PATTERN)] = "x-api-key"
    believed_keys_max: PositiveInt = 100_000


class IdempotencySettings(Section, frozen=True, kw_only=True):
    """How long a creation can be replayed. The 24 hours of a key's value are not a setting."""

    record_days: Annotated[int, Meta(ge=2, le=3650)] = 30


class PolicySettings(Section, frozen=True, kw_only=True):
    """What a policy gets that leaves something to the deployment, frozen when it is published.

    And how long single decisions are kept, and how many may wait to be written.
    """

    default_threshold_basis_points: Annotated[int, Meta(ge=1, le=9999)] = 5000
    decision_days: Annotated[int, Meta(ge=1, le=3650)] = 30
    waiting_decisions_max: PositiveInt = 100_000


class LedgerSettings(Section, frozen=True, kw_only=True):
    """Money. In a sandbox an organization may give itself credit, by test payments.

    Single entries are kept this long, balances and reports for good.
    """

    is_sandbox: bool = False
    entry_days: Annotated[int, Meta(ge=2, le=36500)] = 400


class RedisSettings(Section, frozen=True, kw_only=True):
    """Where rates are counted over all workers. Without a URL each worker counts alone."""

    url: str | None = None
    answer_seconds: Seconds = 0.2

    def __post_init__(self) -> None:
        if self.url is not None and _REDIS_URL.fullmatch(self.url) is None:
            message = (
                "redis.url: not of the form redis://USER:PASSWORD@HOST:6379/0, or rediss:// for"
                " TLS. In user and password, write '@' as %40, '/' as %2F, '?' as %3F, '#' as %23."
            )
            raise InvalidSettings(message)


class InferenceSettings(Section, frozen=True, kw_only=True):
    """How long callers are kept waiting in silence. Deadlines of a call stand at its backend.

    Answers are buffered until a policy's verdict, or until slow readers have read them:
    `buffer_request_bytes` bounds one answer that waits for a verdict, `buffer_worker_bytes` all
    that wait in a worker, of which one organization may use a quarter.
    """

    head_wait_seconds: Seconds = 10.0
    keep_alive_seconds: Seconds = 15.0
    admission_seconds: Seconds = 5.0
    buffer_request_bytes: PositiveInt = 8 * 1024 * 1024
    buffer_worker_bytes: PositiveInt = 256 * 1024 * 1024

    def __post_init__(self) -> None:
        if 2 * self.buffer_request_bytes * ORGANIZATION_SHARE > self.buffer_worker_bytes:
            message = (
                "inference.buffer_request_bytes: more than an eighth of"
                " inference.buffer_worker_bytes: an organization may use a quarter of that, and an"
                " answer that waits for a verdict is in memory twice"
            )
            raise InvalidSettings(message)


class ActivitySettings(Section, frozen=True, kw_only=True):
    """Records of requests: how long they are kept, and how many may wait to be written."""

    record_days: Annotated[int, Meta(ge=1, le=3650)] = 30
    waiting_records_max: PositiveInt = 20_000


class OtelSettings(Section, frozen=True, kw_only=True):
    """Where spans are sent, by OTLP over HTTP. Without an endpoint there are none."""

    endpoint: str | None = None

    def __post_init__(self) -> None:
        if self.endpoint is not None and _COLLECTOR_URL.fullmatch(self.endpoint) is None:
            message = "otel.endpoint: not of the form http://HOST:4318/v1/traces"
            raise InvalidSettings(message)


class QuotaSettings(Section, frozen=True, kw_only=True):
    """What one organization may keep and use. Beyond it an Admin key creates nothing more.

    Projects that are not archived, keys that are neither revoked nor expired, and all policies
    count. `policies_in_effect` bounds those that apply to one project by themselves. The command
    line may exceed these. `pending_evaluations` (requests and answers that wait for their
    policies) and `counted_bytes_per_minute` (bodies of token counting) hold in each worker.
    """

    projects: PositiveInt = 1_000
    project_keys: PositiveInt = 10_000
    admin_keys: PositiveInt = 1_000
    policies: PositiveInt = 1_000
    policies_in_effect: PositiveInt = 200
    pending_evaluations: PositiveInt = 500
    counted_bytes_per_minute: PositiveInt = 67_108_864


class ErrorSettings(Section, frozen=True, kw_only=True):
    """Presentation of failures.

    `documentation_url` is where the page of each code is, if it is not the gateway that serves it.
    """

    documentation_url: str | None = None

    def __post_init__(self) -> None:
        _refuse_other_address("errors.documentation_url", self.documentation_url)


class Settings(Section, frozen=True, kw_only=True):
    """The whole configuration of one deployment. The catalog reads `backends`, `models`, `judge`.

    A file names where a backend's credential is found; here it stands as `api_key`.
    """

    database: DatabaseSettings
    secrets: SecretSettings
    server: ServerSettings = ServerSettings()
    keys: KeySettings = KeySettings()
    idempotency: IdempotencySettings = IdempotencySettings()
    policies: PolicySettings = PolicySettings()
    ledger: LedgerSettings = LedgerSettings()
    errors: ErrorSettings = ErrorSettings()
    redis: RedisSettings = RedisSettings()
    inference: InferenceSettings = InferenceSettings()
    activity: ActivitySettings = ActivitySettings()
    otel: OtelSettings = OtelSettings()
    quotas: QuotaSettings = QuotaSettings()
    backends: dict[str, dict[str, Any]] = {}
    models: dict[str, dict[str, Any]] = {}
    judge: dict[str, Any] = {}

    @property
    def documentation_url(self) -> str | None:
        """The address below which each error code has its page, or None if none is known."""
        if self.errors.documentation_url is not None:
            return self.errors.documentation_url.rstrip("/")
        if self.server.public_url is not None:
            return self.server.public_url.rstrip("/") + ERROR_PAGES_PATH
        return None


def load(path: Path | None = None, environment: Mapping[str, str] = os.environ) -> Settings:
    """Read and check the whole configuration; nothing is used unless all of it is sound."""
    chosen = path or Path(environment.get(CONFIG_PATH_VARIABLE, str(DEFAULT_CONFIG_PATH)))
    tree = _read(chosen)
    _overlay(tree, environment)
    try:
        settings = msgspec.convert(tree, Settings, strict=True)
    except msgspec.ValidationError as error:
        message = f"{chosen}: {error}{_suggestion(str(error))}"
        raise InvalidSettings(message) from None
    _refuse_weak_secrets(settings.secrets)
    backends = {
        name: _with_credential(name, backend, environment)
        for name, backend in settings.backends.items()
    }
    return msgspec.structs.replace(settings, backends=backends)


def _read(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            content = file.read(FILE_BYTES_MAX + 1)
        if len(content) > FILE_BYTES_MAX:
            message = f"{path}: too large. A configuration has at most {FILE_BYTES_MAX} bytes."
            raise InvalidSettings(message)
        return tomllib.loads(content.decode())
    except FileNotFoundError:
        message = f"{path}: no such file. `tollhouse init` writes one."
        raise InvalidSettings(message) from None
    except (OSError, ValueError, RecursionError) as error:
        message = f"{path}: {error}"
        raise InvalidSettings(message) from None


def _overlay(tree: dict[str, Any], environment: Mapping[str, str]) -> None:
    """`TOLLHOUSE_SERVER__PORT=9000` sets `server.port`. Values are read as TOML, else as text."""
    for name, text in environment.items():
        if (setting := _setting_of(name)) is None:
            continue
        section, field = setting
        table = tree.setdefault(section, {})
        if isinstance(table, dict):
            table[field] = _toml_value(text)


def variable_of(
    section: str, fields: tuple[str, ...], environment: Mapping[str, str] = os.environ
) -> str | None:
    """Return the name of a variable that overrides one of these settings in the file, if any."""
    wanted = {(section, field) for field in fields}
    return next((name for name in environment if _setting_of(name) in wanted), None)


def _setting_of(variable: str) -> tuple[str, str] | None:
    if not variable.startswith(ENVIRONMENT_PREFIX) or "__" not in variable:
        return None
    section, _, field = variable.removeprefix(ENVIRONMENT_PREFIX).lower().partition("__")
    return section, field


def _toml_value(text: str) -> Any:  # noqa: ANN401 - whatever TOML holds
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        return text


def _suggestion(message: str) -> str:
    """For an unknown name, the known one that is nearest to it."""
    if "unknown field" not in message:
        return ""
    unknown = message.split("`")[1]
    known = [name for section in _sections() for name in section.__struct_fields__]
    return did_you_mean(unknown, known)


def _sections() -> list[type[Struct]]:
    return [Settings, *Section.__subclasses__()]


def _with_credential(
    name: str, backend: dict[str, Any], environment: Mapping[str, str]
) -> dict[str, Any]:
    """The backend with its `api_key` in the place of where to find it."""
    place = f"backends.{msgspec.json.encode(name).decode()}"
    sources = [source for source in ("api_key_variable", "api_key_file") if source in backend]
    if "api_key" in backend or len(sources) > 1:
        message = (
            f"{place}: a credential does not stand in this file. Say where it is, by either "
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
            message = f"{place}.{source}: {error}"
            raise InvalidSettings(message) from None
    return rest


def _refuse_weak_secrets(secrets: SecretSettings) -> None:
    """Empty, short and repetitive secrets would let anyone forge digests and cursors."""
    if not all(_is_version(version) for version in secrets.peppers):
        message = "secrets.peppers: versions are whole numbers from 1 to 32767"
        raise InvalidSettings(message)
    named = {
        "secrets.master": secrets.master,
        **{
            f"secrets.previous_masters[{index}]": value
            for index, value in enumerate(secrets.previous_masters)
        },
        **{f"secrets.peppers.{version}": value for version, value in secrets.peppers.items()},
    }
    for name, value in named.items():
        if _is_weak(value):
            message = (
                f"{name}: too weak. Use at least {SECRET_LENGTH_MIN} random characters; "
                "`tollhouse init` generates them."
            )
            raise InvalidSettings(message)
    if len(set(named.values())) != len(named):
        message = "secrets: the master secrets and all peppers must differ from each other"
        raise InvalidSettings(message)


def _is_version(text: str) -> bool:
    return _PEPPER_VERSION.fullmatch(text) is not None and int(text) <= _PEPPER_VERSION_MAX


def _is_weak(secret: str) -> bool:
    """Too short, of too few characters, or something short said again and again."""
    periods = range(1, len(secret) // 2 + 1)
    return (
        len(secret.encode()) < SECRET_LENGTH_MIN
        or len(set(secret)) < SECRET_LENGTH_MIN // 4
        or any(secret[period:] == secret[:-period] for period in periods)
    )
