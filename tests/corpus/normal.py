"""Replaces what differs from run to run by words that stay."""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

PATTERNS: Final = [
    (re.compile(pattern), word)
    for pattern, word in (
        (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<uuid>"),
        (r"[0-9a-f]{32,}", "<hex>"),
        (r"(127\.0\.0\.1|localhost):\d+", "<host>"),
        (r'("(?:created|created_at|completed_at)": ?)\d+(?:\.\d+)?', r"\1<time>"),
        (r'(\\"(?:created|created_at|completed_at)\\": ?)\d+(?:\.\d+)?', r"\1<time>"),
        (r'("\w*_?ms": ?)\d+(?:\.\d+)?(?:e-?\d+)?', r"\1<duration>"),
        (r"pair-[12]", "pair-<n>"),
    )
]
"""What is replaced in the text of each side, one pattern after the other."""


class Normal:
    """Makes normal texts of what was seen of one request. `names` has its identifiers."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names
        self._known = re.compile("|".join(map(re.escape, names)))

    def texts(self, **parts: object) -> dict[str, str]:
        """Return one text for each part, which has a line for each of its values."""
        return {name: self._text(part) for name, part in parts.items()}

    def _text(self, part: Any) -> str:  # noqa: ANN401 - any JSON
        text = json.dumps(part, indent=1, ensure_ascii=False, default=str)
        text = self._known.sub(lambda found: self._names[found[0]], text)
        for pattern, word in PATTERNS:
            text = pattern.sub(word, text)
        return text
