"""The route table: which operation or static site serves a path."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote

from msgspec import Struct

from tollhouse.api.call import Handler
from tollhouse.api.head import Head
from tollhouse.api.static_site import StaticSite
from tollhouse.contract.operation import Credential, Guard, MisdeclaredOperation, Operation
from tollhouse.contract.operations import routes_of
from tollhouse.inference.endpoint import Endpoint
from tollhouse.keys.types import KeyKind, RequiredPermission

_KEY_KINDS: Final = {Credential.CUSTOMER: KeyKind.PROJECT, Credential.ADMIN: KeyKind.ADMIN}
_ONLY_BY_PIPELINE = frozenset({Guard.ADMISSION, Guard.POLICIES})


@dataclass(frozen=True, kw_only=True, slots=True)
class Route:
    """An operation, and the handler or the endpoint that serves it.

    An operation that needs admission and policies must have an endpoint, which the pipeline calls.
    All other operations have a handler. `check_head` raises for headers that an endpoint refuses.
    """

    operation: Operation
    handler: Handler | None = None
    endpoint: Endpoint | None = None
    check_head: Callable[[Head], None] | None = None
    is_limited: bool = field(init=False)
    required: RequiredPermission = field(init=False)

    def __post_init__(self) -> None:
        is_guarded = bool(self.operation.guards & _ONLY_BY_PIPELINE)
        serves, serves_not = self.handler, self.endpoint
        if is_guarded:
            serves, serves_not = self.endpoint, self.handler
        if serves is None or serves_not is not None:
            kind = "an endpoint" if is_guarded else "a handler"
            message = f"{self.operation.id}: must have {kind} and nothing else"
            raise MisdeclaredOperation(message)
        object.__setattr__(self, "is_limited", Guard.LIMITS in self.operation.guards)
        access = self.operation.access
        required = RequiredPermission(
            kind=_KEY_KINDS[access.credential],
            permission=access.permission,
            survives_archive=access.survives_archive,
        )
        object.__setattr__(self, "required", required)


@dataclass(slots=True)
class _RouteNode:
    """All routes of one path."""

    template: tuple[str, ...]
    by_method: dict[str, Route] = field(default_factory=dict[str, Route])

    def parameters(self, segments: list[str]) -> dict[str, str] | None:
        found: dict[str, str] = {}
        for expected, segment in zip(self.template, segments, strict=True):
            if expected.startswith("{"):
                if (value := _value(segment)) is None:
                    return None
                found[expected[1:-1]] = value
            elif expected != segment:
                return None
        return found


class Match(Struct, frozen=True):
    """The routes of a path by method, and the parameters in the path."""

    by_method: Mapping[str, Route]
    parameters: dict[str, str]

    @property
    def allowed(self) -> str:
        """The value of the header `Allow`. A path with GET also has HEAD."""
        head = ("HEAD",) if "GET" in self.by_method else ()
        return ", ".join(sorted({*self.by_method, "OPTIONS", *head}))

    def route(self, method: str) -> Route | None:
        """Return the route of a method; HEAD has the route of GET."""
        return self.by_method.get("GET" if method == "HEAD" else method)


class Router:
    """Finds paths without parameters by one look-up, and others by their number of segments."""

    def __init__(self, routes: Sequence[Route], sites: Sequence[StaticSite] = ()) -> None:
        self.routes = routes
        self._sites = sites
        self._exact: dict[str, _RouteNode] = {}
        self._by_length: dict[int, list[_RouteNode]] = {}
        self._tails: list[tuple[str, str, _RouteNode]] = []
        for route in routes:
            for method, path in routes_of(route.operation):
                node = self._node(path, has_tail=route.operation.tail_parameter)
                assert method not in node.by_method, "one operation per method and path"
                node.by_method[method] = route

    def _node(self, path: str, *, has_tail: bool) -> _RouteNode:
        if has_tail:
            prefix, _, name = path.rpartition("/")
            self._tails.append((f"{prefix}/", name[1:-1], node := _RouteNode(())))
            return node
        if "{" not in path:
            return self._exact.setdefault(path, _RouteNode(()))
        template = tuple(path.split("/"))
        same_length = self._by_length.setdefault(len(template), [])
        for node in same_length:
            if _shape(node.template) == _shape(template):
                assert node.template == template, "one name per parameter"
                return node
        same_length.append(node := _RouteNode(template))
        return node

    def match(self, path: str) -> Match | None:
        """Return the routes of a path as it was sent. Only parameters may be percent-encoded.

        So a proxy that restricts `/manage/` can compare the same spelling. A path with a slash
        too many at its end has no route.
        """
        if (exact := self._exact.get(path)) is not None:
            return Match(exact.by_method, {})
        segments = path.split("/")
        for node in self._by_length.get(len(segments), ()):
            if (parameters := node.parameters(segments)) is not None:
                return Match(node.by_method, parameters)
        for prefix, name, node in self._tails:
            if path.startswith(prefix) and (value := _value(path[len(prefix) :])) is not None:
                return Match(node.by_method, {name: value})
        return None

    def site_at(self, raw_path: bytes) -> StaticSite | None:
        """Return the static site that serves a path."""
        for site in self._sites:
            if site.is_at(raw_path):
                return site
        return None


def _value(encoded: str) -> str | None:
    """Decode a path parameter. Return None if it is empty or contains NUL."""
    value = unquote(encoded)
    return value if value and "\0" not in value else None


def _shape(template: tuple[str, ...]) -> tuple[str, ...]:
    return tuple("{}" if segment.startswith("{") else segment for segment in template)
