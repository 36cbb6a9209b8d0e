"""Put the built documentation into the package: `python -m tools.site`, after `zensical build`.

Only files that a reader can reach from the start page are taken. Text is kept compressed. The pages
of single error codes are left out, because the gateway renders them itself at `/docs/errors`.
"""

import gzip
import re
import shutil
import sys
from base64 import b64encode
from collections.abc import Iterator, Sequence
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urljoin, urlsplit

import msgspec

from tollhouse.api import static_files
from tollhouse.console import documentation
from tollhouse.console.documentation import ERROR_PAGE
from tollhouse.console.files import INDEX
from tools.reference.error_pages import STYLE_SOURCE

ROOT: Final = Path(__file__).parents[1]
BUILT: Final = ROOT / "build" / "site"
SEARCH_INDEX: Final = "search.json"
SIZE_MAX: Final = 2_050_000
"""Bytes of the wheel, and of every worker's memory."""
_STYLE_USE: Final = re.compile(r'\("style",\{\},([\w$]+)\.toString\(\)\)')
_VERBATIM: Final = re.compile(
    r"(<pre\b.*?</pre>|<script\b.*?</script>|<style\b.*?</style>|<textarea\b.*?</textarea>)",
    re.DOTALL,
)
_INDENTATION: Final = re.compile(r"\s*\n\s*")
_QUESTION: Final = re.compile(r"(<tr>\s*)<td>(OQ-(\d+))</td>")
_HEADING: Final = re.compile(r'<h2 id="([\w-]+)"')
_SUMMARY: Final = re.compile(r"<tr>((?:(?!</tr>).)*<td>(OQ-[^<]*)</td>\s*</tr>)", re.DOTALL)
"""A row that ends with the numbers of questions."""
_CELL: Final = re.compile(r"<td>.*?</td>", re.DOTALL)
_MENTION: Final = re.compile(r"OQ-(\d+)")
_LOADED: Final = {"img": "src", "script": "src", "source": "srcset"}
_LOADING_LINKS: Final = frozenset({"stylesheet", "icon", "preload", "manifest"})


class Page(HTMLParser):
    """What one page links to (`links`), loads (`loads`), and runs (`scripts`)."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.scripts: list[str] = []
        self._is_script = False
        self._is_config = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect the addresses of one element."""
        found = {name: value or "" for name, value in attrs}
        if (address := found.get(_LOADED.get(tag, ""))) is not None:
            self.loads.append(address)
        elif tag in ("a", "link") and "href" in found:
            is_loaded = tag == "link" and found.get("rel") in _LOADING_LINKS
            (self.loads if is_loaded else self.links).append(found["href"])
        self._is_config = found.get("id") == "__config"
        self._is_script = tag == "script" and not found.keys() & {"src", "type"}

    def handle_endtag(self, tag: str) -> None:
        """Note that a script is over."""
        del tag
        self._is_script = self._is_config = False

    def handle_data(self, data: str) -> None:
        """Collect a script, and the worker that the configuration names."""
        if self._is_script:
            self.scripts.append(data)
        elif self._is_config:
            self.loads.append(msgspec.json.decode(data)["search"])


class SiteProblem(Exception):
    """The built site cannot be served as it is."""


class Collection:
    """The files that can be reached from the start page, and the inline scripts of its pages."""

    def __init__(self, built: Path) -> None:
        self._built = built
        self.names: set[str] = set()
        self.scripts: set[str] = set()
        self._add(INDEX)
        self._add(SEARCH_INDEX)

    def _add(self, name: str) -> None:
        pending = [name]
        while pending:
            name = pending.pop()
            if name in self.names:
                continue
            if not (self._built / name).is_file():
                message = f"the site links to {name}, which is not built"
                raise SiteProblem(message)
            self.names.add(name)
            pending += self._reached_from(name)

    def _reached_from(self, name: str) -> Iterator[str]:
        if not name.endswith(".html"):
            return
        page = Page((self._built / name).read_text(encoding="utf-8"))
        self.scripts.update(page.scripts)
        for address in page.loads:
            if urlsplit(address).netloc:
                message = f"{name} loads {address} from another host"
                raise SiteProblem(message)
        for address in [*page.loads, *page.links]:
            if (target := _target(name, address)) is not None:
                yield target


def _target(page: str, address: str) -> str | None:
    """Return the file that an address names; None for other hosts and single error codes."""
    parts = urlsplit(address)
    if parts.scheme or parts.netloc:
        return None
    path = unquote(urljoin(f"/{page}", parts.path or page.rpartition("/")[2])).removeprefix("/")
    if ERROR_PAGE.fullmatch(f"/{path}"):
        return None
    return f"{path}{INDEX}" if not path or path.endswith("/") else path


def collect(built: Path, target: Path) -> int:
    """Replace `target` by what is served of the site in `built`; return its size in bytes."""
    collection = Collection(built)
    shutil.rmtree(target, ignore_errors=True)
    for name in sorted(collection.names):
        content = (built / name).read_bytes()
        if name.endswith(".html"):
            content = anchored(without_indentation(content.decode())).encode()
        elif name.endswith(".json"):
            content = msgspec.json.format(content, indent=-1)
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix in static_files.COMPRESSED:
            path = path.with_name(f"{path.name}.gz")
            content = gzip.compress(content, mtime=0)
        elif path.suffix not in static_files.PLAIN:
            message = f"{name} is of a kind that the gateway does not serve"
            raise SiteProblem(message)
        path.write_bytes(content)
    styles = [_digest(_search_style(built, name)) for name in collection.names if _is_bundle(name)]
    policy = site_policy(sorted(map(_digest, collection.scripts)), styles)
    (target / documentation.POLICY).write_text(policy, encoding="utf-8")
    return sum(path.stat().st_size for path in target.rglob("*") if path.is_file())


def site_policy(scripts: Sequence[str], styles: Sequence[str]) -> str:
    """Return the content security policy that lets pages load and run only what was built.

    `scripts` and `styles` are the digests (SHA-256, base64) of what pages have inside.
    """
    return (
        f"default-src 'none'; script-src {_sources(scripts)}; "
        f"style-src {_sources(styles)} {STYLE_SOURCE}; connect-src 'self'; "
        "img-src 'self' data:; worker-src 'self'; "
        "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    )


def _sources(digests: Sequence[str]) -> str:
    return " ".join(["'self'", *(f"'sha256-{digest}'" for digest in digests)])


def without_indentation(page: str) -> str:
    """Return a page without indentation and empty lines, but in texts where they count."""
    parts = _VERBATIM.split(page)
    # The expression has one group, so that every second part is a text that it matched.
    parts[::2] = [_INDENTATION.sub("\n", part) for part in parts[::2]]
    return "".join(parts)


def anchored(page: str) -> str:
    """Return a page whose rows of open questions can be linked to, by links from their numbers."""
    page = _QUESTION.sub(r'\1<td id="oq-\3">\2</td>', page)

    def linked(mention: re.Match[str]) -> str:
        is_here = f'id="oq-{mention[1]}"' in page
        return f'<a href="#oq-{mention[1]}">{mention[0]}</a>' if is_here else mention[0]

    named = "".join(map(_named_summaries, re.split(r"(?=<h2 )", page)))
    return _CELL.sub(lambda cell: _MENTION.sub(linked, cell[0]), named)


def _named_summaries(section: str) -> str:
    """Anchor each row that sums questions up by its section and their numbers."""
    heading = _HEADING.match(section)
    if heading is None:
        return section
    return _SUMMARY.sub(
        lambda row: f'<tr id="{"-".join([heading[1], *re.findall(r"[0-9]+", row[2])])}">{row[1]}',
        section,
    )


def _digest(text: str) -> str:
    return b64encode(sha256(text.encode()).digest()).decode()


def _is_bundle(name: str) -> bool:
    return name.startswith("assets/javascripts/bundle.")


def _search_style(built: Path, bundle: str) -> str:
    """Return the style that the script puts into the search dialog when a reader opens it."""
    script = (built / bundle).read_text(encoding="utf-8")
    name = _STYLE_USE.search(script)
    style = name and re.search(rf"\bvar {re.escape(name[1])}='((?:[^'\\]|\\.)*)'", script)
    if not style:
        message = f"{bundle} has no style of the search dialog where it was looked for"
        raise SiteProblem(message)
    return re.sub(r"\\(['\\])", r"\1", style[1])


def main() -> int:
    """Fill the package's folder and print the size; return 1 if the site is too large."""
    size = collect(BUILT, documentation.BUILT)
    print(f"the documentation in the package: {size:,} of at most {SIZE_MAX:,} bytes")
    return int(size > SIZE_MAX)


if __name__ == "__main__":
    sys.exit(main())
