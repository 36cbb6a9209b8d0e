"""Reading the files of the console into memory."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from tollhouse.api.static_site import File, etag_of

BUILT: Final = Path(__file__).parent / "static"
"""The output folder of `make console`; part of the wheel, but not of the repository."""

INDEX: Final = "index.html"
_HASHED_FOLDER: Final = "assets/"
_MEDIA_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


def read(folder: Path) -> Mapping[str, File]:
    """Return the files by their path below `folder`; empty if the console is not built."""
    return dict(_files(folder))


def _files(folder: Path) -> Iterator[tuple[str, File]]:
    for path in sorted(folder.rglob("*")):
        if (media_type := _MEDIA_TYPES.get(path.suffix)) is None or not path.is_file():
            continue
        name = path.relative_to(folder).as_posix()
        content = path.read_bytes()
        compressed = path.with_name(f"{path.name}.gz")
        file = File(
            content=content,
            gzipped=compressed.read_bytes() if compressed.is_file() else None,
            media_type=media_type,
            etag=etag_of(content),
            is_hashed=name.startswith(_HASHED_FOLDER),
        )
        yield name, file
