"""How values of attribution and the requests that named them are moved to another cell."""

from typing import Final

from tollhouse.storage.portable import portable_table

VALUES: Final = portable_table("attribution_values", order="id")

REQUESTS: Final = portable_table("request_attributions", order='dimension COLLATE "C", request_id')

TABLES: Final = (VALUES, REQUESTS)
