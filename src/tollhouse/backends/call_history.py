"""What calls for one model tell about a replica, and when it is left out for their failures."""

from dataclasses import dataclass, replace
from enum import StrEnum, auto

from tollhouse.backends.errors import BackendBusy, BackendError
from tollhouse.base.errors import RETRY_AFTER_SECONDS_MAX

CALL_WEIGHT = 0.25
"""How much the last call weighs in the share of failed calls, against all calls before it."""
FAILED_SHARE_MAX = 0.5
"""A replica is ejected above this share: after three failures in a row, if all was well before."""
FAILED_SHARE_FORGOTTEN = 0.01
PAUSES_SECONDS = (1.0, 2.0, 4.0, 8.0, 10.0)
"""One call in each pause is a trial, until one succeeds. Pauses grow while trials fail."""


class ReplicaUse(StrEnum):
    """Whether a replica receives calls or, for which reason, trials alone."""

    IN_USE = auto()
    FAILING = auto()
    """Too many of its last calls failed."""
    SILENT = auto()
    """Too many of its last calls failed, and the last one had no answer in time."""
    COOLING = auto()
    """It said how long it wants no calls."""
    UNHEALTHY = auto()
    """Its health checks fail. It receives no trials either."""
    EJECTED = auto()
    """The operator left it out. It receives no trials either."""


@dataclass(frozen=True, slots=True)
class CallHistory:
    """What calls for one model tell about a replica."""

    state: ReplicaUse = ReplicaUse.IN_USE
    failed_share: float = 0.0
    trials: int = 0
    """Since all was well."""
    trial_at_seconds: float = 0.0
    why: str = ""
    """How the last call failed that made it leave `IN_USE`."""

    def allows(self, now_seconds: float, *, is_bounded: bool) -> bool:
        """Return whether a call may pass now.

        A call that may wait long for its answer is no trial of a silent replica while others are.
        """
        if self.state is ReplicaUse.IN_USE:
            return True
        is_last_choice = self.state is ReplicaUse.SILENT and not is_bounded
        return now_seconds >= self.trial_at_seconds + is_last_choice * PAUSES_SECONDS[-1]

    def after_call_began(self, now_seconds: float) -> "CallHistory":
        """Return the history after a call passed. A trial keeps others off for one pause."""
        if self.state is ReplicaUse.IN_USE:
            return self
        trials = self.trials + 1
        return replace(self, trials=trials, trial_at_seconds=now_seconds + _pause_seconds(trials))

    def after_success(self) -> "CallHistory":
        """Return the history after a call succeeded."""
        share = self.failed_share * (1 - CALL_WEIGHT)
        if share < FAILED_SHARE_FORGOTTEN:
            return ALL_WELL
        return CallHistory(failed_share=share, trials=self.trials)

    def after_failure(self, failure: BackendError, now_seconds: float) -> "CallHistory":
        """Return the history after a failure that the replica is to blame for."""
        share = self.failed_share * (1 - CALL_WEIGHT) + CALL_WEIGHT
        pause_seconds = _pause_seconds(self.trials)
        if isinstance(failure, BackendBusy) and failure.cooldown_seconds:
            state = ReplicaUse.COOLING
            cooldown_seconds = min(failure.cooldown_seconds, RETRY_AFTER_SECONDS_MAX)
            pause_seconds = max(pause_seconds, cooldown_seconds)
        elif self.state is not ReplicaUse.IN_USE:
            # A call that began before, or a trial: the next one is due when that was begun.
            return replace(self, failed_share=share)
        elif share <= FAILED_SHARE_MAX:
            return replace(self, failed_share=share)
        else:
            state = ReplicaUse.SILENT if failure.is_silence else ReplicaUse.FAILING
        trial_at_seconds = max(self.trial_at_seconds, now_seconds + pause_seconds)
        return CallHistory(state, share, self.trials, trial_at_seconds, failure.outcome)


ALL_WELL = CallHistory()


def _pause_seconds(trials: int) -> float:
    return PAUSES_SECONDS[min(trials, len(PAUSES_SECONDS) - 1)]
