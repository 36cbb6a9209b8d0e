"""Reading the files of a static site into memory. Text stays compressed there."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from tollhouse.api.static_site import File, etag_of

COMPRESSED: Final = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
}
"""Media types of what a build stores with the further suffix `.gz`, and only so."""
PLAIN: Final = {".png": "image/png", ".webp": "image/webp"}


def read(folder: Path, *, hashed_folders: tuple[str, ...]) -> Mapping[str, File]:
    """Return the files by their path below `folder`; empty if the site is not built."""
    return dict(_files(folder, hashed_folders))


def _files(folder: Path, hashed_folders: tuple[str, ...]) -> Iterator[tuple[str, File]]:
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.suffix in PLAIN:
            content = path.read_bytes()
            yield name, File(content=content, media_type=PLAIN[path.suffix], etag=etag_of(content))
        elif path.suffix == ".gz":
            content = path.read_bytes()
            file = File(
                gzipped=content,
                media_type=COMPRESSED[path.with_suffix("").suffix],
                etag=etag_of(content),
                is_hashed=name.startswith(hashed_folders),
            )
            yield name.removesuffix(".gz"), file
