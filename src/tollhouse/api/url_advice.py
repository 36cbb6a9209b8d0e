"""Advice for the caller of an unknown URL.

The advice names declared routes, never the path that was sent, because callers put keys and names
into paths.
"""

from collections.abc import Iterable, Iterator
from difflib import get_close_matches

from tollhouse.api.router import Match, Route, Router
from tollhouse.contract.compat_operations import MESSAGES_BASE
from tollhouse.contract.operation import GIVEN_PREFIX, MANAGE_PREFIX

_RESOURCE = len(f"{MANAGE_PREFIX}organization".split("/"))
"""The index of the path segment that names the resource."""
_LIKENESS_MIN = 0.66
_NOT_SERVED = {
    "assistants": "assistants",
    "audio": "audio",
    "batches": "batches",
    "completions": "legacy completions",
    "containers": "containers",
    "conversations": "conversations",
    "embeddings": "embeddings",
    "evals": "evals",
    "files": "files",
    "fine_tuning": "fine-tuning",
    "images": "images",
    "moderations": "moderations",
    "realtime": "realtime sessions",
    "rerank": "reranking",
    "threads": "threads",
    "uploads": "uploads",
    "vector_stores": "vector stores",
    "videos": "videos",
}
"""Operations of OpenAI's API by the segment after `/v1`."""
_PATH_LENGTH_MAX = 1_000
_MESSAGES_WORDS = f"Let the base URL of an Anthropic client end in '{MESSAGES_BASE}'."


def not_served(path: str) -> str | None:
    """Return what the URL would do in OpenAI's API, if the gateway does not serve that."""
    resource, _, _ = path.removeprefix("/v1").removeprefix("/").partition("/")
    return _NOT_SERVED.get(resource)


class UrlAdvice:
    """One per worker."""

    def __init__(self, router: Router) -> None:
        self._router = router
        managed = [each for each in router.routes if each.operation.path.startswith(MANAGE_PREFIX)]
        below = [_segments(each)[_RESOURCE:] for each in managed]
        self._resources = sorted({segments[0] for segments in below if segments})
        self._at = _by_path(managed)

    def managed_route(self, method: str, path: str) -> Route | None:
        """Return the route of this method that the management extension has at a `/v1` path."""
        if not path.startswith(GIVEN_PREFIX):
            return None
        match = self._router.match(_managed(path))
        return None if match is None else match.route(method)

    def for_unknown(self, method: str, path: str) -> str | None:
        """Return the advice for a path without an operation, or None if there is none to give."""
        if len(path) > _PATH_LENGTH_MAX:
            return None
        if path.endswith("/") and self._router.match(path.rstrip("/")) is not None:
            return "Leave out the slash at the end of the path."
        if path.endswith("/messages"):
            return _MESSAGES_WORDS
        if self._router.match(f"/v1{path}") is not None:
            return "The path lacks '/v1'. Let the base URL of your client end in '/v1'."
        if path.startswith("/v1/v1/") and self._router.match(path.removeprefix("/v1")) is not None:
            return "The path has '/v1' twice. Let the base URL of your client end in '/v1' once."
        return self._for_other_base(method, path)

    def _for_other_base(self, method: str, path: str) -> str | None:
        """Return the advice for a path that exists, or nearly, below another base URL."""
        for base in (MANAGE_PREFIX, f"{MESSAGES_BASE}{GIVEN_PREFIX}"):
            if path.startswith(base):
                match = self._router.match(GIVEN_PREFIX + path.removeprefix(base))
                if match is not None and (route := match.route(method)) is not None:
                    return _given_words(route)
        if path.startswith("/organization/"):
            path = f"/v1{path}"
        is_near = path.startswith((GIVEN_PREFIX, MANAGE_PREFIX))
        return self._for_managed(method, path) if is_near else None

    def _for_managed(self, method: str, path: str) -> str | None:
        if (route := self.managed_route(method, path)) is not None:
            return moved_words(route)
        for candidate in self._candidates(_managed(path).split("/")):
            if (match := self._router.match(candidate)) is not None:
                route = match.route(method)
                return _words(self._near(match) if route is None else [route])
        return None

    def _candidates(self, segments: list[str]) -> Iterator[str]:
        """Yield the path itself, and the paths of resources that it names or resembles."""
        yield "/".join(segments)
        below, resource = segments[:_RESOURCE], segments[_RESOURCE:]
        if resource and resource[-1] in self._resources:
            yield "/".join([*below, resource[-1]])
        if len(resource) == len(("usage", "completions")):
            yield "/".join([*below, resource[0]])
        if len(resource) == 1:
            for nearest in get_close_matches(resource[0], self._resources, 1, _LIKENESS_MIN):
                yield "/".join([*below, nearest])

    def _near(self, match: Match) -> list[Route]:
        """Return the routes of a path, and its actions, such as `.../revoke`."""
        own = list(match.by_method.values())
        path = own[0].operation.path
        verbs = [
            routes[0]
            for below, routes in self._at.items()
            if below.rpartition("/")[0] == path and _is_verb(routes)
        ]
        return own + verbs


def moved_words(route: Route) -> str:
    """Return the advice to use a route of the management extension that has the same path."""
    return (
        f"{_words([route])} Let the base URL of an SDK for administration end in '/manage/v1', "
        "where all organization routes are."
    )


def _given_words(route: Route) -> str:
    named = f"`{route.operation.method} {route.operation.path}`"
    return (
        f"Models are called under '/v1': use {named}. Let the base URL of the client end in '/v1'."
    )


def _words(routes: Iterable[Route]) -> str:
    named = ", ".join(f"`{each.operation.method} {each.operation.path}`" for each in routes)
    return f"Administration that is not part of '/v1' is served under '/manage/v1': use {named}."


def _managed(path: str) -> str:
    return MANAGE_PREFIX + path.removeprefix(MANAGE_PREFIX).removeprefix(GIVEN_PREFIX)


def _segments(route: Route) -> list[str]:
    return route.operation.path.split("/")


def _by_path(routes: Iterable[Route]) -> dict[str, list[Route]]:
    found: dict[str, list[Route]] = {}
    for route in routes:
        found.setdefault(route.operation.path, []).append(route)
    return found


def _is_verb(routes: list[Route]) -> bool:
    """Return whether a path only accepts POST, so that it is an action and not a collection."""
    return [each.operation.method for each in routes] == ["POST"]
