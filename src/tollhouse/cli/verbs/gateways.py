"""Chooses what a command talks to: the deployment of this host, or a gateway over HTTP."""

from pathlib import Path

import click
from click.core import ParameterSource

from tollhouse.base.errors import GatewayError, Kind
from tollhouse.cli.verbs import profiles
from tollhouse.cli.verbs.gateway import Gateway
from tollhouse.contract.operation import AnyOperation, OperatorOperation


class NoGateway(GatewayError):
    """The command has neither a gateway nor a configuration."""

    kind = Kind.UNAVAILABLE
    code = "no_gateway"
    template = (
        "Neither {self.path} nor a gateway to talk to was found. Run `tollhouse login URL`, set "
        "TOLLHOUSE_URL and TOLLHOUSE_ADMIN_KEY, or name the configuration with --config."
    )
    path: Path


class OnlyOnTheHost(GatewayError):
    """An Admin key cannot do what only the operator may do."""

    kind = Kind.DENIED
    code = "only_for_the_operator"
    template = (
        "`tollhouse {self.command}` is for the operator alone: run it on a host that has the "
        "configuration ({self.path} was not found; --config names another file)."
    )
    command: str
    path: Path


def chosen(
    operation: AnyOperation, settings_path: Path, *, profile: str | None, organization: str | None
) -> Gateway:
    """Return the deployment of this host, or else a gateway over HTTP.

    A profile that is named comes first, then a configuration that is named or at hand, then the
    variables, then the default profile.
    """
    is_operators = isinstance(operation, OperatorOperation)
    is_at_hand = settings_path.exists() or organization is not None or _is_named()
    if is_at_hand and profile is None:
        from tollhouse.cli.verbs.host import HostGateway  # noqa: PLC0415 - imports the database

        return HostGateway(settings_path, organization)
    if is_operators:
        raise OnlyOnTheHost(command=operation.command.name, path=settings_path)
    login = profiles.from_variables() if profile is None else None
    login = login or profiles.read(profile)
    if login is None:
        raise NoGateway(path=settings_path)
    from tollhouse.cli.verbs.http_gateway import HttpGateway  # noqa: PLC0415 - imports HTTP

    return HttpGateway(login)


def _is_named() -> bool:
    """Return whether the user names a configuration, which must then exist."""
    context = click.get_current_context(silent=True)
    source = None if context is None else context.find_root().get_parameter_source("config")
    return source in (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)
