"""The same reports from the entries alone, one by one: slow, and written without the product."""

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

import asyncpg

_SETTLED = """
SELECT floor(extract(epoch FROM admitted_at))::bigint AS second,
       project_id::text, api_key_id::text, model,
       is_estimated, input_tokens, cached_input_tokens, output_tokens, images,
       input_pico, cached_input_pico, output_pico, image_pico, request_pico,
       cache_write_tokens, cache_write_pico
  FROM (SELECT * FROM ledger_entries UNION ALL SELECT * FROM dropped) e
 WHERE organization_id = $1
   AND phase = 1
   AND (kind = 'post' OR posted_pico > 0)
"""
_WIDTHS = {"1d": 86400, "1h": 3600}
Group = tuple[str, str, str]


class Entry(NamedTuple):
    second: int
    project_id: str
    api_key_id: str
    model: str
    is_estimated: bool
    input_tokens: int
    cached_input_tokens: int
    output_tokens: int
    images: int
    input_pico: int
    cached_input_pico: int
    output_pico: int
    image_pico: int
    request_pico: int
    cache_write_tokens: int
    cache_write_pico: int


Lines = dict[Group, Any]


@dataclass(frozen=True)
class Asked:
    """A question as the interface puts it."""

    start: int
    end: int
    group_by: frozenset[str] = frozenset()
    project_ids: frozenset[str] | None = None
    api_key_ids: frozenset[str] | None = None
    width: str = "1d"

    def parameters(self) -> list[tuple[str, str | int | float | bool | None]]:
        listed = {"project_ids": self.project_ids, "api_key_ids": self.api_key_ids}
        return [
            ("start_time", str(self.start)),
            ("end_time", str(self.end)),
            ("bucket_width", self.width),
            *(("group_by", name) for name in sorted(self.group_by)),
            *((name, item) for name, items in listed.items() for item in sorted(items or ())),
        ]


@dataclass(frozen=True)
class Entries:
    """All that was settled, in memory."""

    rows: list[Entry]

    @classmethod
    async def read(cls, connection: asyncpg.Connection, organization_id: UUID) -> "Entries":
        await connection.execute("CREATE TABLE IF NOT EXISTS dropped (LIKE ledger_entries)")
        rows = list[Entry]()
        async with connection.transaction():
            async for row in connection.cursor(_SETTLED, organization_id, prefetch=10_000):
                second, project_id, api_key_id, model, *sums = row
                # A million entries share a few texts.
                project_id, api_key_id, model = map(sys.intern, (project_id, api_key_id, model))
                rows.append(Entry(second, project_id, api_key_id, model, *sums))
        return cls(rows)

    def costs(self, asked: Asked) -> dict[int, Lines]:
        """Pico-dollars by bucket and group."""
        found: dict[int, dict[Group, int]] = _empty(asked)
        for bucket, row in self._counted(asked):
            lines = found[bucket]
            for part, amount in _parts(row, by_line_item="line_item" in asked.group_by):
                group = (*_owner(row, asked), part)
                lines[group] = lines.get(group, 0) + amount
        return found

    def usage(self, asked: Asked) -> dict[int, Lines]:
        """Requests, tokens and images by bucket and group."""
        found: dict[int, dict[Group, tuple[int, ...]]] = _empty(asked)
        for bucket, row in self._counted(asked):
            group = (*_owner(row, asked), row.model if "model" in asked.group_by else "")
            tokens = (row.input_tokens, row.cached_input_tokens, row.output_tokens)
            used = (1, int(row.is_estimated), *tokens, row.images, row.cache_write_tokens)
            known = found[bucket].get(group, (0,) * len(used))
            found[bucket][group] = tuple(map(sum, zip(known, used, strict=True)))
        return found

    def _counted(self, asked: Asked) -> Iterable[tuple[int, Entry]]:
        width = _WIDTHS[asked.width]
        for row in self.rows:
            if (
                asked.start <= row.second < asked.end
                and (asked.project_ids is None or row.project_id in asked.project_ids)
                and (asked.api_key_ids is None or row.api_key_id in asked.api_key_ids)
            ):
                yield row.second // width * width, row


def _empty(asked: Asked) -> dict[int, Any]:
    width = _WIDTHS[asked.width]
    return {bucket: {} for bucket in range(asked.start // width * width, asked.end, width)}


def _owner(row: Entry, asked: Asked) -> tuple[str, str]:
    project_id = row.project_id if "project_id" in asked.group_by else ""
    return project_id, row.api_key_id if "api_key_id" in asked.group_by else ""


def _parts(row: Entry, *, by_line_item: bool) -> list[tuple[str, int]]:
    parts = (
        (
            "input",
            row.input_tokens - row.cache_write_tokens,
            row.input_pico - row.cache_write_pico,
        ),
        ("cache write", row.cache_write_tokens, row.cache_write_pico),
        ("cached input", row.cached_input_tokens, row.cached_input_pico),
        ("output", row.output_tokens, row.output_pico),
        ("image", row.images, row.image_pico),
        ("request", 0, row.request_pico),
    )
    if not by_line_item:
        return [("", sum(amount for _, _, amount in parts))]
    return [
        (f"{row.model}, {part}", amount) for part, quantity, amount in parts if quantity or amount
    ]
