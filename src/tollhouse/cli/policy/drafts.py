"""What the commands that try a policy on texts share."""

from pathlib import Path
from typing import Final

import click

from tollhouse.base.ids import OrganizationId, PolicyId
from tollhouse.cli.session import Session
from tollhouse.policies import service
from tollhouse.policies.applying import Side, on_trial
from tollhouse.policies.types import AppliedPolicy, Policy

FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)


async def retrieve(operator: Session, organization_id: OrganizationId, policy: PolicyId) -> Policy:
    """Return a policy of an organization."""
    async with operator.database.transaction() as tx:
        return await service.retrieve(tx, organization_id, policy)


def versions(operator: Session, policy: Policy) -> dict[Side, AppliedPolicy]:
    """Return the draft and, if there is one, the published version, ready to be evaluated."""
    default = operator.settings.policies.default_threshold_basis_points
    return on_trial(policy, default_threshold_basis_points=default)
