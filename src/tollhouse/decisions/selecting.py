"""How many of the latest requests selected a policy by themselves."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from tollhouse.base.ids import OrganizationId, PolicyId, ProjectId
from tollhouse.storage.database import Transaction
from tollhouse.storage.partitions import read_in_index_order

EVALUATIONS_MAX: Final = 10_000
"""The most evaluations that are read, of today and yesterday."""


async def selecting_requests(
    tx: Transaction,
    organization_id: OrganizationId,
    policy_id: PolicyId,
    covered: Sequence[ProjectId],
    *,
    now: datetime,
) -> int:
    """Return how many of the latest requests had a policy that does not cover their project.

    It was evaluated for them, or skipped, because they named it.
    """
    await read_in_index_order(tx)
    return await tx.fetch_value(
        """
        SELECT count(DISTINCT request_id)
          FROM (SELECT request_id, project_id, policy_ids
                  FROM evaluations
                 WHERE organization_id = $1
                   AND day >= $2
                 ORDER BY day DESC, request_id DESC
                 LIMIT $3) latest
         WHERE $4 = ANY (policy_ids)
           AND project_id <> ALL ($5::uuid[])
        """,
        organization_id,
        (now - timedelta(days=1)).date(),
        EVALUATIONS_MAX,
        policy_id,
        covered,
    )
