"""Refuse metaphors and unclear constructions in prose: docstrings, comments and messages."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator

from tools.checks.source import Finding, Findings, Source

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


def check(source: Source) -> Findings:
    """Find refused phrases in the sentences and comments of a file."""
    if source.path.startswith(EXEMPT):
        return 0
    examined = 0
    for line, text in _prose(source):
        examined += 1
        for found in _PHRASES.finditer(" ".join(text.split())):
            message = MESSAGE.format(phrase=found[0].lower())
            yield Finding(path=source.path, line=line, message=message)
    return examined


def _prose(source: Source) -> Iterator[tuple[int, str]]:
    """Yield strings of several words and blocks of comments, each with its first line."""
    for node in source.nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, node.value
    # Tokens take long to find. A comment is no longer than what follows the first `#` of each line.
    comments = " ".join(line.partition("#")[2].lstrip("# ") for line in source.lines)
    if source.is_sql or not _PHRASES.search(" ".join(comments.split())):
        return
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
