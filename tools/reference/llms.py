"""`llms.txt`: every page with its first sentence, for programs."""

import re
from collections.abc import Mapping
from pathlib import Path

HEAD = """\
# Tollhouse

> An OpenAI-compatible gateway in front of model engines, with prepaid credit, spending caps,
> policies in natural language, project and Admin keys, and cost reports, for many organizations.

"""
SECTIONS = {
    "guides": "Guides",
    "runbooks": "Runbooks",
    "reference": "Reference",
    "": "More",
    "decisions": "Decisions",
}
EACH_ERROR = "errors/index.md"
OPENING = re.compile(r"For whoever [^.]*\. |(?:At the end of|After) this page ")
SENTENCES = re.compile(r"(?<=[.:?]) (?=[A-Z`])")


def page(docs: Path, made: Mapping[Path, str]) -> str:
    """Return the page. Pages of single errors are left out; their index has them."""
    texts = {path: path.read_text(encoding="utf-8") for path in docs.rglob("*.md")} | dict(made)
    parts = [HEAD]
    for folder, title in SECTIONS.items():
        found = [
            f"- [{_title(text)}]({name}): {_summary(text)}\n"
            for path, text in sorted(texts.items())
            if _folder(name := path.relative_to(docs).as_posix()) == folder
        ]
        parts.append(f"## {title}\n\n{''.join(found)}\n")
    return "".join(parts).rstrip() + "\n"


def _folder(name: str) -> str | None:
    folder, _, rest = name.rpartition("/")
    if folder.startswith("reference/"):
        return "reference" if name.endswith(EACH_ERROR) else None
    return folder if rest else None


def _title(text: str) -> str:
    return text.partition("\n")[0].removeprefix("# ")


def _summary(text: str) -> str:
    paragraphs = (part.strip() for part in text.split("\n\n")[1:])
    first = next((part for part in paragraphs if part[:1] not in "#|-`"), "")
    sentence = " ".join(first.removeprefix("> ").split())
    if opening := OPENING.match(sentence):
        sentence = sentence[opening.end() :]
    return SENTENCES.split(sentence[:1].upper() + sentence[1:], maxsplit=1)[0]
