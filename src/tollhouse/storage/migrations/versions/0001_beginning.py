"""The beginning: an empty database gets the texts of `storage/schema` and is stamped with this."""

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Do nothing: no database has an earlier revision of this history."""
