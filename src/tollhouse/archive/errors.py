"""Errors of the archive, for the operator who runs its commands."""

from tollhouse.base.errors import DeploymentError


class ArchiveNotConfigured(DeploymentError):
    """No archive is configured."""

    code = "archive_not_configured"

    def __init__(self) -> None:
        super().__init__(
            "There is no archive. Set archive.url to a directory (file:///var/lib/tollhouse) or to "
            "a bucket (s3://BUCKET/PREFIX)."
        )


class ArchivePackagesMissing(DeploymentError):
    """The packages that read and write Parquet files are not installed."""

    code = "archive_packages_missing"

    def __init__(self) -> None:
        super().__init__(
            "The packages that read and write Parquet files are not installed. "
            "Install tollhouse[archive]."
        )


class ArchiveDiffers(DeploymentError):
    """The files of a day do not contain what the database has. The day stays in the database."""

    code = "archive_differs"


class ArchiveUnreachable(DeploymentError):
    """The directory or bucket of the archive cannot be read or written."""

    code = "archive_unreachable"
