"""Checks of the Redis that counts traffic."""

from collections.abc import AsyncIterator
from typing import Final

from tollhouse.base.findings import Finding, FindingOutcome, failure, ok, warning
from tollhouse.base.redis_url import RedisMode
from tollhouse.limits import health
from tollhouse.limits.errors import CounterUnavailable
from tollhouse.limits.health import RedisGroupHealth, RedisHealth
from tollhouse.settings import RedisSettings

ANSWER_SECONDS: Final = 5.0
MAJOR_VERSION_MIN: Final = 7
_MEMBERS: Final = {RedisMode.SENTINEL: "Sentinels", RedisMode.CLUSTER: "nodes"}


async def redis(settings: RedisSettings) -> AsyncIterator[Finding]:
    """Check Redis. Without it each worker counts alone, so that limits multiply."""
    if settings.url is None:
        yield ok("redis", "none configured; each worker counts traffic alone")
        return
    try:
        found = await health.examine_group(settings.url, patience_seconds=ANSWER_SECONDS)
    except CounterUnavailable as error:
        remedy = "Start it, or correct [redis]. Until then each worker counts traffic alone."
        yield failure("redis", f"does not answer: {error}", remedy)
        return
    findings = [redis_finding(master) for master in found.masters]
    yield next((each for each in findings if each.outcome is not FindingOutcome.OK), findings[0])
    if found.mode is not RedisMode.SINGLE:
        yield failover_finding(found)


def redis_finding(found: RedisHealth) -> Finding:
    """Return a warning if the version is too old or if keys can be evicted."""
    server = f"version {found.version}, eviction policy {found.eviction_policy}"
    shown = f"{server}, at {found.address}"
    if int(found.version.partition(".")[0]) < MAJOR_VERSION_MIN:
        remedy = f"Use Redis or Valkey {MAJOR_VERSION_MIN} or newer."
        return warning("redis", shown, remedy)
    if found.drops_keys:
        remedy = "When its memory is full, counts are lost. Set maxmemory-policy noeviction."
        return warning("redis", shown, remedy)
    return ok("redis", shown)


def failover_finding(found: RedisGroupHealth) -> Finding:
    """Return what keeps a failover from happening: silent members, or missing replicas."""
    check, members = "redis failover", _MEMBERS[found.mode]
    if found.failures:
        count = f"{len(found.failures)} of {found.members} {members}"
        shown = f"{count} do not answer: {'; '.join(found.failures)}"
        return warning(check, shown, "Start them, or correct their addresses in redis.url.")
    alone = [master.address for master in found.masters if not master.replicas]
    if alone:
        shown = f"no replica is connected to {', '.join(alone)}"
        return warning(check, shown, "Add a replica: without one no failover is possible.")
    masters = ", ".join(master.address for master in found.masters)
    return ok(check, f"{found.members} {members} answer; masters with replicas: {masters}")
