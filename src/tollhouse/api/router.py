"""The route table turned into a look-up. What stands in the table is served, and nothing else."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote

from tollhouse.api.call import Handler
from tollhouse.contract.operation import Guard, MisdeclaredOperation, Operation
from tollhouse.inference.surface import Surface

_ONLY_BY_PIPELINE = frozenset({Guard.ADMISSION, Guard.POLICIES})


@dataclass(frozen=True, kw_only=True, slots=True)
class Route:
    """An operation and who serves it.

    What must be admitted and judged can only be served as a surface, which the pipeline calls:
    a plain handler of such an operation cannot be put into the table.
    """

    operation: Operation
    handler: Handler | None = None
    surface: Surface | None = None

    def __post_init__(self) -> None:
        is_guarded = bool(self.operation.guards & _ONLY_BY_PIPELINE)
        serves, serves_not = self.handler, self.surface
        if is_guarded:
            serves, serves_not = self.surface, self.handler
        if serves is None or serves_not is not None:
            message = f"{self.operation.id}: a surface is what must be admitted and judged"
            raise MisdeclaredOperation(message)


@dataclass(slots=True)
class _Place:
    """All methods of one path."""

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


@dataclass(frozen=True, slots=True)
class Match:
    """The routes of a path by method, and the parameters that the path holds."""

    by_method: Mapping[str, Route]
    parameters: dict[str, str]

    @property
    def allowed(self) -> str:
        """For `Allow`; whatever can be read can be asked for its head."""
        methods = set(self.by_method) | {"OPTIONS"} | ({"HEAD"} & self._head())
        return ", ".join(sorted(methods))

    def route(self, method: str) -> Route | None:
        """HEAD is GET without the content."""
        return self.by_method.get("GET" if method == "HEAD" else method)

    def _head(self) -> set[str]:
        return {"HEAD"} if "GET" in self.by_method else set()


class Router:
    """Paths without parameters by one look-up; the others by their number of segments."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._exact: dict[str, _Place] = {}
        self._by_length: dict[int, list[_Place]] = {}
        self._tails: list[tuple[str, str, _Place]] = []
        for route in routes:
            place = self._place(route.operation)
            assert route.operation.method not in place.by_method, "one route per operation"
            place.by_method[route.operation.method] = route

    def _place(self, operation: Operation) -> _Place:
        path = operation.path
        if operation.tail_parameter:
            prefix, _, name = path.rpartition("/")
            self._tails.append((f"{prefix}/", name[1:-1], place := _Place(())))
            return place
        if "{" not in path:
            return self._exact.setdefault(path, _Place(()))
        template = tuple(path.split("/"))
        same_length = self._by_length.setdefault(len(template), [])
        for place in same_length:
            if _shape(place.template) == _shape(template):
                assert place.template == template, "one name per parameter"
                return place
        same_length.append(place := _Place(template))
        return place

    def match(self, path: str) -> Match | None:
        """What stands at this path, as it was sent. Only parameters may be percent-encoded.

        A proxy that guards `/manage/` compares the same spelling. Trailing slashes are not
        forgiven, nor redirected.
        """
        if (exact := self._exact.get(path)) is not None:
            return Match(exact.by_method, {})
        segments = path.split("/")
        for place in self._by_length.get(len(segments), ()):
            if (parameters := place.parameters(segments)) is not None:
                return Match(place.by_method, parameters)
        for prefix, name, place in self._tails:
            if path.startswith(prefix) and (value := _value(path[len(prefix) :])) is not None:
                return Match(place.by_method, {name: value})
        return None


def _value(encoded: str) -> str | None:
    """A parameter as it is meant; nothing when it is empty, or holds what no text does."""
    value = unquote(encoded)
    return value if value and "\0" not in value else None


def _shape(template: tuple[str, ...]) -> tuple[str, ...]:
    return tuple("{}" if segment.startswith("{") else segment for segment in template)
