"""A hint for whoever misspelt a name."""

import difflib
from collections.abc import Iterable


def did_you_mean(unknown: str, known: Iterable[str], *, likeness_min: float = 0.6) -> str:
    """The end of a sentence that refuses a name: the nearest known one, if any is near."""
    nearest = difflib.get_close_matches(unknown, list(known), n=1, cutoff=likeness_min)
    return f". Did you mean `{nearest[0]}`?" if nearest else ""
