"""Checks of the Redis that counts traffic."""

from typing import Final

from tollhouse.cli.doctor.findings import Finding, failure, ok, warning
from tollhouse.limits import health
from tollhouse.limits.errors import CounterUnavailable
from tollhouse.limits.health import RedisHealth
from tollhouse.settings import RedisSettings

ANSWER_SECONDS: Final = 5.0
MAJOR_VERSION_MIN: Final = 7


async def redis(settings: RedisSettings) -> Finding:
    """Check Redis. Without it each worker counts alone, so that limits multiply."""
    if settings.url is None:
        return ok("redis", "none configured; each worker counts traffic alone")
    try:
        found = await health.examine(settings.url, patience_seconds=ANSWER_SECONDS)
    except CounterUnavailable as error:
        remedy = "Start it, or correct [redis]. Until then each worker counts traffic alone."
        return failure("redis", f"does not answer: {error}", remedy)
    return redis_finding(found)


def redis_finding(found: RedisHealth) -> Finding:
    """Return a warning if the version is too old or if keys can be evicted."""
    shown = f"version {found.version}, eviction policy {found.eviction_policy}"
    if int(found.version.partition(".")[0]) < MAJOR_VERSION_MIN:
        remedy = f"Use Redis or Valkey {MAJOR_VERSION_MIN} or newer."
        return warning("redis", shown, remedy)
    if found.drops_keys:
        remedy = "When its memory is full, counts are lost. Set maxmemory-policy noeviction."
        return warning("redis", shown, remedy)
    return ok("redis", shown)
