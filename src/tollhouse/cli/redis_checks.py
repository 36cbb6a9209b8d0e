"""Checks of the Redis that counts traffic."""

from typing import Final

from tollhouse.cli.findings import Finding, failure, ok, warning
from tollhouse.limits import health
from tollhouse.limits.errors import CountingLost
from tollhouse.limits.health import RedisHealth
from tollhouse.settings import RedisSettings

ASKING_SECONDS: Final = 5.0
MAJOR_VERSION_MIN: Final = 7


async def redis(settings: RedisSettings) -> Finding:
    """Workers count alone without it, each as much as all of them together should."""
    if settings.url is None:
        return ok("redis", "none configured: each worker counts traffic alone")
    try:
        found = await health.examine(settings.url, patience_seconds=ASKING_SECONDS)
    except CountingLost as error:
        remedy = "Start it, or correct [redis]. Until then each worker counts traffic alone."
        return failure("redis", f"does not answer: {error}", remedy)
    return judge_redis(found)


def judge_redis(found: RedisHealth) -> Finding:
    """Too old a version, or one that forgets what was counted."""
    shown = f"version {found.version}, eviction policy {found.eviction_policy}"
    if int(found.version.partition(".")[0]) < MAJOR_VERSION_MIN:
        remedy = f"Use Redis or Valkey {MAJOR_VERSION_MIN} or newer."
        return warning("redis", shown, remedy)
    if found.drops_keys:
        remedy = "When it is full it forgets what was counted. Set maxmemory-policy noeviction."
        return warning("redis", shown, remedy)
    return ok("redis", shown)
