"""The sections of the configuration, with their limits and defaults. Secrets have no default."""

import re
from typing import Annotated, Any

from msgspec import Meta, field

from tollhouse.base import redis_url
from tollhouse.base.errors import ERROR_PAGES_PATH
from tollhouse.base.quotas import ORGANIZATION_SHARE, OrganizationQuotas
from tollhouse.base.redis_url import URL_HOST, URL_OPTION, MalformedRedisUrl
from tollhouse.settings.alert_settings import AlertSettings
from tollhouse.settings.file_sections import ArchiveSettings, ExportSettings
from tollhouse.settings.section import InvalidSettings, Section
from tollhouse.settings.sign_in import OidcSettings

PREVIOUS_MASTERS_MAX = 3
# A password with an unencoded `@`, `/`, `?` or `#` would be parsed as host, port or path, and
# appear in the driver's error message.
_DATABASE_URL = re.compile(
    r"postgres(?:ql)?://"
    r"(?:[^\s@/?#\[\]]*@)?"
    rf"{URL_HOST}(?:,{URL_HOST})*"
    r"(?:/[^\s@/?#]*)?"
    rf"(?:\?{URL_OPTION}(?:&{URL_OPTION})*)?",
    re.ASCII,
)
_COLLECTOR_URL = re.compile(rf"https?://{URL_HOST}(?:/[^\s@?#]*)?", re.ASCII)
# Only the characters of a plain address are allowed, since it becomes part of responses.
_PUBLIC_URL = re.compile(
    r"https?://(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?(?:/[A-Za-z0-9._~/%-]*)?",
    re.ASCII,
)
_ORIGIN = re.compile(
    r"[a-z][a-z0-9+.-]*://(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?", re.ASCII
)
CELL_PATTERN = r"\A[a-z][a-z0-9]{0,15}\Z"
CUSTOMER_HEADER_PATTERN = r"\A[Xx]-[A-Za-z0-9-]{1,62}\Z"

Port = Annotated[int, Meta(ge=0, le=65535)]
Seconds = Annotated[float, Meta(gt=0, le=86400)]
PositiveInt = Annotated[int, Meta(ge=1)]
HeaderName = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9-]{1,64}\Z")]


BODIES_TO_BODY_BYTES = 8
"""The least ratio of `bodies_bytes_max` to `body_bytes_max`. A parsed text takes up to six times
its size in memory, and an eighth of the total is kept for small bodies."""


def _check_address(name: str, value: str | None) -> None:
    if value is not None and _PUBLIC_URL.fullmatch(value) is None:
        message = (
            f"{name}: not of the form https://HOST or https://HOST:PORT/PATH. Leave out user,"
            " password, '?' and '#'."
        )
        raise InvalidSettings(message)


class DatabaseSettings(Section, frozen=True, kw_only=True):
    """PostgreSQL. Each worker has two connection pools.

    Inference uses `pool_size` connections: key lookup, admission, settlement, policies, heartbeat
    and records. Admin routes, reports and maintenance use `admin_pool_size`, so that inference does
    not wait for them. Statements time out after `statement_seconds`, on Admin routes after
    `admin_statement_seconds`, in reports after `report_statement_seconds`.
    `tollhouse serve`, at its start, and `tollhouse migrate` wait `start_seconds` for a database
    that is away.
    `replica_url` names a standby for reports, lists and the verification of workers. The primary
    answers them while the standby is away or late. Each worker opens up to `admin_pool_size`
    connections to it.
    """

    url: str
    pool_size: Annotated[int, Meta(ge=1, le=500)] = 10
    admin_pool_size: Annotated[int, Meta(ge=1, le=500)] = 4
    acquire_seconds: Seconds = 5.0
    statement_seconds: Seconds = 10.0
    admin_statement_seconds: Seconds = 10.0
    report_statement_seconds: Seconds = 20.0
    prepared_statements: bool = True
    start_seconds: Annotated[float, Meta(ge=0, le=3_600)] = 60.0
    replica_url: str | None = None

    def __post_init__(self) -> None:
        for name, url in (("url", self.url), ("replica_url", self.replica_url)):
            if url is not None and _DATABASE_URL.fullmatch(url) is None:
                message = (
                    f"database.{name}: not of the form postgresql://ROLE:PASSWORD@HOST:5432/"
                    "DATABASE. In role and password, write '@' as %40, '/' as %2F, '?' as %3F, '#'"
                    " as %23."
                )
                raise InvalidSettings(message)


class SecretSettings(Section, frozen=True, kw_only=True):
    """The secrets of a deployment. `master` is used once every live worker accepts it.

    `previous_masters` still decrypt what they encrypted, and verify what they signed.
    """

    master: str
    previous_masters: Annotated[list[str], Meta(max_length=PREVIOUS_MASTERS_MAX)] = field(
        default_factory=list[str]
    )

    def master_bytes(self) -> list[bytes]:
        """Return the accepted master secrets, newest first."""
        return [secret.encode() for secret in (self.master, *self.previous_masters)]


class ServerSettings(Section, frozen=True, kw_only=True):
    """Listeners, workers, and limits on connections and bodies.

    `public_url` is the address at which clients reach the gateway. Links to the gateway's own pages
    begin with it; the Host header of a request is never used for them.
    A connection whose peer reads nothing for `write_seconds` is closed, and its request settles.
    A worker has at most `connections_max` connections, or fewer if the system allows fewer file
    descriptors. For each further connection it closes the longest idle one, or the one whose body
    made no progress for longest. A worker whose event loop does not run for
    `worker_silence_seconds` is killed and replaced.
    `bodies_bytes_max` limits the memory for request bodies in one worker. It is at least eight
    times `body_bytes_max`, and one organization may use a quarter of it. `bodies_per_key_max` and
    `bodies_per_organization_max` limit the bodies above 64 KiB that one worker reads and parses
    concurrently.
    Each worker runs `admin_requests_per_organization` Admin requests of one organization
    concurrently. Further ones wait up to `admin_wait_seconds` and are then refused with 429: a
    waiting request costs less than a client that retries at once.
    Scripts of web pages from `cors_origins` may call `/v1` and `/compat`.
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
    cors_origins: Annotated[tuple[str, ...], Meta(max_length=100)] = ()

    def __post_init__(self) -> None:
        _check_address("server.public_url", self.public_url)
        for origin in self.cors_origins:
            if _ORIGIN.fullmatch(origin) is None:
                message = (
                    "server.cors_origins: not of the form https://HOST or https://HOST:PORT in"
                    " lower case. '*', paths and a final slash are no origins that browsers send."
                )
                raise InvalidSettings(message)
        needed = BODIES_TO_BODY_BYTES * self.body_bytes_max
        if self.bodies_bytes_max < needed:
            message = (
                f"server.bodies_bytes_max: {self.bodies_bytes_max} is too low. It must be at least"
                f" {BODIES_TO_BODY_BYTES} times server.body_bytes_max, which is {needed}, or a body"
                " of that size could never be parsed. Raise it, or lower server.body_bytes_max."
            )
            raise InvalidSettings(message)


class KeySettings(Section, frozen=True, kw_only=True):
    """The header for keys, how many keys a worker caches, and the cell that new keys name."""

    customer_header: Annotated[str, Meta(pattern=CUSTOMER_HEADER_PATTERN)] = "x-api-key"
    cache_size: PositiveInt = 100_000
    cell: Annotated[str, Meta(pattern=CELL_PATTERN)] | None = None


class IdempotencySettings(Section, frozen=True, kw_only=True):
    """How long a creation can be replayed. A key's value can be replayed for 24 hours, always."""

    record_days: Annotated[int, Meta(ge=2, le=3650)] = 30


class PolicySettings(Section, frozen=True, kw_only=True):
    """Defaults and records of policies.

    A policy without a threshold gets the default when it is published. Decisions are kept for
    `decision_days`; at most `waiting_decisions_max` wait to be written.
    """

    default_threshold_basis_points: Annotated[int, Meta(ge=1, le=9999)] = 5000
    decision_days: Annotated[int, Meta(ge=1, le=3650)] = 30
    waiting_decisions_max: PositiveInt = 100_000


class LedgerSettings(Section, frozen=True, kw_only=True):
    """The ledger. In a sandbox an organization can add credit by test payments.

    Entries are kept for `entry_days`; balances and reports are kept for good.
    """

    is_sandbox: bool = False
    entry_days: Annotated[int, Meta(ge=2, le=36500)] = 400


class RedisSettings(Section, frozen=True, kw_only=True):
    """The Redis that counts traffic of all workers. Without a URL each worker counts alone."""

    url: str | None = None
    answer_seconds: Seconds = 0.2

    def __post_init__(self) -> None:
        if self.url is not None:
            try:
                redis_url.parse(self.url)
            except MalformedRedisUrl as error:
                message = f"redis.url: {error}"
                raise InvalidSettings(message) from None


class InferenceSettings(Section, frozen=True, kw_only=True):
    """Waiting times and buffers of inference. Timeouts of calls are settings of a backend.

    Answers are buffered until a policy's verdict, or until slow callers have read them.
    `buffer_request_bytes` limits one answer that waits for a verdict, `buffer_worker_bytes` all
    buffered answers of a worker. One organization may use a quarter of the latter.
    `session_headers` name a session if neither given session header does: requests of one session
    go to one replica.
    """

    head_wait_seconds: Seconds = 10.0
    keep_alive_seconds: Seconds = 15.0
    admission_seconds: Seconds = 5.0
    buffer_request_bytes: PositiveInt = 8 * 1024 * 1024
    buffer_worker_bytes: PositiveInt = 256 * 1024 * 1024
    session_headers: Annotated[tuple[HeaderName, ...], Meta(max_length=8)] = (
        "x-session-affinity",
        "x-claude-code-session-id",
    )

    def __post_init__(self) -> None:
        if 2 * self.buffer_request_bytes * ORGANIZATION_SHARE > self.buffer_worker_bytes:
            message = (
                "inference.buffer_request_bytes: more than an eighth of"
                " inference.buffer_worker_bytes. One organization may use a quarter of that, and an"
                " answer that waits for a verdict is in memory twice. Lower the first or raise the"
                " second."
            )
            raise InvalidSettings(message)


class ActivitySettings(Section, frozen=True, kw_only=True):
    """Records of requests: how long they are kept, and how many can wait to be written."""

    record_days: Annotated[int, Meta(ge=1, le=3650)] = 30
    waiting_records_max: PositiveInt = 20_000


class OtelSettings(Section, frozen=True, kw_only=True):
    """Where spans are sent by OTLP over HTTP. Without an endpoint none are recorded.

    With `follows_callers`, the header `traceparent` of a request is the parent of its span.
    `sample_ratio` is the share of traces whose spans are sent.
    """

    endpoint: str | None = None
    follows_callers: bool = True
    sample_ratio: Annotated[float, Meta(ge=0, le=1)] = 1.0

    def __post_init__(self) -> None:
        if self.endpoint is not None and _COLLECTOR_URL.fullmatch(self.endpoint) is None:
            message = "otel.endpoint: not of the form http://HOST:4318/v1/traces"
            raise InvalidSettings(message)


class QuotaSettings(Section, frozen=True, kw_only=True):
    """The most that one organization may have and use.

    Archived projects and revoked or expired keys do not count. `policies_in_effect` limits the
    policies that apply to all requests of one project. The command line can exceed these quotas.
    `alert_attempts_per_hour` limits what is sent by webhook and e-mail together, over all workers.
    `pending_evaluations` (requests and answers that wait for their policies) and
    `counted_bytes_per_minute` (bodies of token counting) apply to each worker.
    """

    projects: PositiveInt = 1_000
    project_keys: PositiveInt = 10_000
    admin_keys: PositiveInt = 1_000
    policies: PositiveInt = 1_000
    policies_in_effect: PositiveInt = 200
    alert_subscriptions: PositiveInt = 50
    alert_attempts_per_hour: PositiveInt = 100
    pending_evaluations: PositiveInt = 500
    counted_bytes_per_minute: PositiveInt = 67_108_864

    def stored_objects(self) -> OrganizationQuotas:
        """Return the most objects of each kind that the database keeps of one organization."""
        return OrganizationQuotas(
            projects=self.projects,
            project_keys=self.project_keys,
            admin_keys=self.admin_keys,
            policies=self.policies,
            alert_subscriptions=self.alert_subscriptions,
        )


class ErrorSettings(Section, frozen=True, kw_only=True):
    """Links in error responses.

    `documentation_url` is the address of the error pages, unless the gateway serves them itself.
    """

    documentation_url: str | None = None

    def __post_init__(self) -> None:
        _check_address("errors.documentation_url", self.documentation_url)


class CompatibilitySettings(Section, frozen=True, kw_only=True):
    """Interfaces of other providers.

    `messages_under_v1` also serves `POST /compat/anthropic/v1/messages` as `POST /v1/messages`.
    `accepts_own_answers` takes what SDKs copy from an answer into the next chat request: an
    assistant's `refusal` is forwarded as content, `annotations`, `parsed` and an empty `audio` are
    dropped. The specification rejects them.
    """

    messages_under_v1: bool = False
    accepts_own_answers: bool = False


class Settings(Section, frozen=True, kw_only=True):
    """The configuration of one deployment. The catalog parses `backends`, `models` and `judge`.

    The file says where a backend's credential is; here the credential is in `api_key`.
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
    archive: ArchiveSettings = ArchiveSettings()
    exports: ExportSettings = ExportSettings()
    otel: OtelSettings = OtelSettings()
    alerts: AlertSettings = AlertSettings()
    quotas: QuotaSettings = QuotaSettings()
    compatibility: CompatibilitySettings = CompatibilitySettings()
    oidc: OidcSettings = OidcSettings()
    backends: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    models: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    judge: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def documentation_url(self) -> str | None:
        """Return the address of the error pages without a final slash, or None if unknown."""
        if self.errors.documentation_url is not None:
            return self.errors.documentation_url.rstrip("/")
        if self.server.public_url is not None:
            return self.server.public_url.rstrip("/") + ERROR_PAGES_PATH
        return None
