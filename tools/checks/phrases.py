"""Refuse metaphors and unclear constructions in prose: docstrings, comments and messages."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator

from tools.checks.source import Finding, Source

REFUSED = (
    *("anybody", "believe", "believed", "believes", "courthouse", "courtroom", "elevator"),
    *("furniture", "laid out", "lay out", "lays out", "nobody", "of which", "patience"),
    *("somebody", "the house", "the same of", "whoever", "whosever"),
)
EXEMPT = (
    "src/tollhouse/evaluation/judge/prompts.py",  # a prompt that judges were calibrated with
    "src/tollhouse/trial/engine.py",  # the text of its answers
)
_PHRASES = re.compile(rf"\b(?:{'|'.join(map(re.escape, REFUSED))})\b", re.IGNORECASE)
MESSAGE = "{phrase!r}: say who acts and what happens, in plain words"


def check(source: Source) -> Iterator[Finding]:
    """Find refused phrases in the sentences and comments of a file."""
    if source.path.startswith(EXEMPT):
        return
    for line, text in _prose(source):
        for found in _PHRASES.finditer(" ".join(text.split())):
            message = MESSAGE.format(phrase=found[0].lower())
            yield Finding(path=source.path, line=line, message=message)


def _prose(source: Source) -> Iterator[tuple[int, str]]:
    """Yield strings of several words and blocks of comments, each with its first line."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, node.value
    block: list[str] = []
    last = 0
    for token in tokenize.generate_tokens(io.StringIO(source.text).readline):
        if token.type == tokenize.COMMENT:
            if block and token.start[0] != last + 1:
                yield last - len(block) + 1, " ".join(block)
                block = []
            block.append(token.string.lstrip("# "))
            last = token.start[0]
    if block:
        yield last - len(block) + 1, " ".join(block)
