"""What all sections of the configuration have in common."""

from msgspec import Struct

from tollhouse.base.errors import DeploymentError


class InvalidSettings(DeploymentError):
    """The configuration is invalid. The message names the setting and says what to change."""

    code = "invalid_settings"


class Section(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of the configuration file. Its `repr` has no values, since some are secret."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"
