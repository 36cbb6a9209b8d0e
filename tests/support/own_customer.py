"""A customer of the test's own, in the gateway and before the upstream that its module shares.

To be imported beside the fixtures of `shared_gateway` and `shared_deployment`, whose `deployment`
has one customer for all tests of a module.
"""

import pytest_asyncio

from tests.support.deployment import Deployment, customer_of
from tests.support.gateway import Gateway
from tests.support.organization_fixture import OrganizationFixture
from tests.upstream.upstream import ScriptedUpstream


@pytest_asyncio.fixture(loop_scope="module")
async def deployment(
    gateway: Gateway, upstream: ScriptedUpstream, org: OrganizationFixture
) -> Deployment:
    """Scripts of the tests before are forgotten, and what the upstream saw of them."""
    upstream.scripts.clear()
    upstream.seen.clear()
    return await customer_of(gateway, upstream, org)
