"""Policy evaluation: which policies apply to a request, and what the judge model answers.

Other packages import only these names. The command line also imports the judge and calibration.
"""

from tollhouse.evaluation.buffer_quota import (
    COUNTED_BYTES_MIN,
    AnswerBuffers,
    OutputBuffer,
)
from tollhouse.evaluation.content.rendering import completion_content
from tollhouse.evaluation.content.stream_accumulator import StreamAccumulator
from tollhouse.evaluation.dependencies import (
    AppliedPolicies,
    EvaluationInput,
    evaluator_dependencies,
    evaluator_for,
    judge_config,
    publication_check,
)
from tollhouse.evaluation.errors import (
    AnswerBuffersFull,
    OutputBufferExceeded,
    PolicyEvaluatorUnavailable,
    UnjudgedAnswer,
)
from tollhouse.evaluation.policy_preflight import preflight
from tollhouse.evaluation.policy_resolver import PolicyResolver
from tollhouse.evaluation.request_evaluation import RequestEvaluation
from tollhouse.evaluation.stream_checkpoints import StreamCheckpoints
from tollhouse.evaluation.trials import PolicyTrials
from tollhouse.evaluation.types import EvaluationDecision

__all__ = [
    "COUNTED_BYTES_MIN",
    "AnswerBuffers",
    "AnswerBuffersFull",
    "AppliedPolicies",
    "EvaluationDecision",
    "EvaluationInput",
    "OutputBuffer",
    "OutputBufferExceeded",
    "PolicyEvaluatorUnavailable",
    "PolicyResolver",
    "PolicyTrials",
    "RequestEvaluation",
    "StreamAccumulator",
    "StreamCheckpoints",
    "UnjudgedAnswer",
    "completion_content",
    "evaluator_dependencies",
    "evaluator_for",
    "judge_config",
    "preflight",
    "publication_check",
]
