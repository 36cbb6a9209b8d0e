"""How many judge tokens an organization may use in a minute, counted in this worker."""

from tollhouse.base.clock import Clock
from tollhouse.base.ids import OrganizationId
from tollhouse.base.quotas import Quota
from tollhouse.base.rates import OrganizationRate, retry_after_seconds
from tollhouse.judging.errors import JudgeTokensExhausted
from tollhouse.observability import bound_metrics


class JudgeTokenRate:
    """One per worker. Monitoring has as many tokens of its own: it never makes enforcing refuse."""

    def __init__(self, clock: Clock, *, tokens_per_minute: int) -> None:
        self._tokens_per_minute = tokens_per_minute
        self._enforcing = OrganizationRate(clock, per_minute=tokens_per_minute)
        self._watching = OrganizationRate(clock, per_minute=tokens_per_minute)

    def check(self, organization_id: OrganizationId, tokens: int) -> None:
        """Raise `JudgeTokensExhausted` if enforcing may not take so many now. Takes nothing."""
        self._refuse(self._enforcing.wait_us(organization_id, tokens), is_watched=False)

    def take(
        self, organization_id: OrganizationId, tokens: int, *, is_watched: bool = False
    ) -> None:
        """Take so many tokens before the judge is asked, or raise `JudgeTokensExhausted`."""
        rate = self._watching if is_watched else self._enforcing
        self._refuse(rate.take(organization_id, tokens), is_watched=is_watched)

    def correct(
        self, organization_id: OrganizationId, tokens: int, *, is_watched: bool = False
    ) -> None:
        """Charge what was used beyond what was taken, or give back a negative difference."""
        rate = self._watching if is_watched else self._enforcing
        rate.charge(organization_id, tokens)

    def _refuse(self, wait_us: int, *, is_watched: bool) -> None:
        if not wait_us:
            return
        if not is_watched:
            bound_metrics.quota_refused(Quota.JUDGE_TOKENS)
        raise JudgeTokensExhausted(
            self._tokens_per_minute, retry_after_seconds=retry_after_seconds(wait_us)
        )
