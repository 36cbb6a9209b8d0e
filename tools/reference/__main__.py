"""Write the generated pages. With `--check`, only list those that are out of date."""

import sys
from pathlib import Path

from tollhouse.console.documentation import ERRORS
from tools.reference import api, commands, errors, guarantees, llms, metrics, settings

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def pages() -> dict[Path, str]:
    """Return every page by its path. `llms.txt` is last, since it reads the others."""
    made = {
        DOCS / "reference" / name: text
        for name, text in {
            "operations.md": api.operations(),
            "schemas.md": api.schemas(),
            "settings.md": settings.page(),
            "metrics.md": metrics.page(),
            "commands.md": commands.page(),
            **errors.pages(),
        }.items()
    }
    made[DOCS / "guarantees.md"] = guarantees.page()
    return made | {DOCS / "llms.txt": llms.page(DOCS, made), ERRORS: errors.data()}


def main() -> int:
    """Write the pages, or with `--check` return 1 if one is out of date."""
    made = pages()
    kept = set((DOCS / "reference").rglob("*.md")) | {DOCS / "llms.txt"}
    stale = [
        path
        for path in sorted(kept | set(made))
        if path not in made or not path.exists() or path.read_text(encoding="utf-8") != made[path]
    ]
    if "--check" in sys.argv[1:]:
        for path in stale:
            print(f"{path.relative_to(ROOT)} is out of date; run `make reference`")
        return 1 if stale else 0
    for path in stale:
        if path in made:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(made[path], encoding="utf-8")
        else:
            path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
