"""Errors of imports, for the operator who runs them."""

from tollhouse.base.errors import DeploymentError


class YamlPackageMissing(DeploymentError):
    """The package that reads YAML is not installed."""

    code = "yaml_package_missing"

    def __init__(self) -> None:
        super().__init__(
            "The package that reads YAML is not installed. Install tollhouse[import], or convert"
            " the file to JSON."
        )


class ImportUnreadable(DeploymentError):
    """A file is not of a form that can be imported."""

    code = "import_unreadable"
