"""What a judge has to say against policies before they are put in force."""

from collections.abc import Sequence

from tollhouse.base.errors import GatewayError
from tollhouse.judging import budget
from tollhouse.judging.court import JudgeConfig
from tollhouse.judging.errors import PolicySetTooLarge, RuleTooLong
from tollhouse.policies.sets import Objection, no_objection
from tollhouse.policies.types import AppliedPolicy


def objection_of(config: JudgeConfig | None) -> Objection:
    """Nothing is objected to where nothing judges: what applies then is refused when it does."""
    if config is None:
        return no_objection

    def objection(policies: Sequence[AppliedPolicy]) -> GatewayError | None:
        try:
            for policy in policies:
                budget.check_rule(policy.rule, config.profile)
            budget.check_set(policies, config.profile, tokens_max=config.request_tokens_max)
        except (RuleTooLong, PolicySetTooLarge) as refusal:
            return refusal
        return None

    return objection
