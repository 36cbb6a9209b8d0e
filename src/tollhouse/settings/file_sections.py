"""The sections for files in a directory or in S3-compatible storage."""

import re
from typing import Annotated, Final

from msgspec import Meta

from tollhouse.settings.section import InvalidSettings, Section

# No credential is allowed, since the exporter would repeat it in error messages.
_FILES_URL: Final = re.compile(
    r"file:///[^\s?#]+|s3://[^\s/@?#]+(?:/[^\s@?#]*)?(?:\?[^\s#]*)?", re.ASCII
)


class ArchiveSettings(Section, frozen=True, kw_only=True):
    """Where days go that leave the database. Without an address they are dropped.

    With an address, workers drop no day of records or entries that is not archived yet.
    """

    url: str | None = None

    def __post_init__(self) -> None:
        if self.url is not None and _FILES_URL.fullmatch(self.url) is None:
            message = (
                "archive.url: not of the form file:///DIRECTORY or s3://BUCKET/PREFIX. For other "
                "services than AWS, add ?endpoint_override=HOST&scheme=https&region=REGION. "
                "Credentials come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
            )
            raise InvalidSettings(message)


class ExportSettings(Section, frozen=True, kw_only=True):
    """`provider_name` is provider, publisher and invoice issuer of costs in the FOCUS format."""

    provider_name: Annotated[str, Meta(min_length=1, max_length=80)] = "Tollhouse"
