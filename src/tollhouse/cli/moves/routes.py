"""Routes of keys whose organizations have moved, in the forms of nginx and Envoy."""

from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct


class KeyRoute(Struct, frozen=True, kw_only=True):
    """A key of a moved organization, redacted, and the cell that serves it now."""

    key: str
    cell: str


def nginx_line(route: KeyRoute) -> str:
    """Return a line for the map of `deploy/nginx.conf`."""
    pattern = route.key.replace("...", "[0-9A-Za-z]{41}")
    return f'"~^{pattern}$" tollhouse_{route.cell};'


def envoy_lines(route: KeyRoute) -> str:
    """Return routes for `deploy/envoy-routes.yaml`, one for each header of a credential."""
    # A counted repetition is too large: Envoy refuses expressions of more than 100 instructions.
    pattern = route.key.replace("...", "[0-9A-Za-z]+")
    return "\n".join(
        f"          - match: {{ prefix: /, headers: [{{ name: {header}, string_match: "
        f'{{ safe_regex: {{ regex: "{before}{pattern}" }} }} }}] }}\n'
        f"            route: {{ cluster: tollhouse_{route.cell}, timeout: 0s }}"
        for header, before in (("authorization", "(?i:bearer) +"), ("x-api-key", ""))
    )


RENDERERS: Final[Mapping[str, Callable[[KeyRoute], str]]] = {
    "nginx": nginx_line,
    "envoy": envoy_lines,
}
