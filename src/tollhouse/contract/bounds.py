"""The bounds of all fields, and the types that have them.

Lengths count Unicode code points. A bound that the specification does not give has the number
of its open question beside it.
"""

from typing import Annotated, Any, Literal

from msgspec import Meta

from tollhouse.base.permissions import (
    ADMIN_PERMISSIONS,
    CHECK_NAME_PATTERN,
    CUSTOMER_PERMISSIONS,
)

FreeObject = dict[str, Any]
"""An object whose members the specification does not define."""
Uuid = Annotated[str, Meta(extra_json_schema={"format": "uuid"})]
NOT_SERVED = Meta(
    description="No model serves it: refused with 501 unless it is null, false or empty."
)
OnlyFalse = Annotated[bool, Meta(extra_json_schema={"const": False})]
"""`check` refuses true, because that refusal has its own code and message."""

# Inference.
MODEL_NAME_LENGTH_MAX = 200
OUTPUT_TOKENS_MAX = 999_990
OUTPUT_TOKENS_DEFAULT = 1_024
POLICY_IDS_MAX = 1_000
REQUESTED_POLICY_ID_LENGTH_MAX = 120
COMPLETIONS_MAX = 128
PENALTY_MAX = 2.0
LOGIT_BIAS_MAX = 100.0
SAFETY_IDENTIFIER_LENGTH_MAX = 64
USER_LENGTH_MAX = 512
PROMPT_CACHE_KEY_LENGTH_MAX = 512
SCHEMA_NAME_LENGTH_MAX = 128
SCHEMA_DESCRIPTION_LENGTH_MAX = 2_048
MESSAGE_MODEL_ID_LENGTH_MAX = 256
SESSION_ID_LENGTH_MAX = 512
BETA_FLAGS_LENGTH_MAX = 512
METADATA_PAIRS_MAX = 16  # OQ-49
METADATA_NAME_LENGTH_MAX = 64  # OQ-49
METADATA_VALUE_LENGTH_MAX = 512  # OQ-49

ModelName = Annotated[str, Meta(min_length=1, max_length=MODEL_NAME_LENGTH_MAX)]
OutputBound = Annotated[int, Meta(ge=1, le=OUTPUT_TOKENS_MAX)]
RequestedPolicyId = Annotated[str, Meta(min_length=1, max_length=REQUESTED_POLICY_ID_LENGTH_MAX)]
PolicyIds = Annotated[list[RequestedPolicyId], Meta(max_length=POLICY_IDS_MAX)]
CompletionCount = Annotated[int, Meta(ge=1, le=COMPLETIONS_MAX)]
Penalty = Annotated[float, Meta(ge=-PENALTY_MAX, le=PENALTY_MAX)]
LogitBias = Annotated[float, Meta(ge=-LOGIT_BIAS_MAX, le=LOGIT_BIAS_MAX)]
SafetyIdentifier = Annotated[str, Meta(max_length=SAFETY_IDENTIFIER_LENGTH_MAX)]
User = Annotated[str, Meta(max_length=USER_LENGTH_MAX)]
PromptCacheKey = Annotated[str, Meta(max_length=PROMPT_CACHE_KEY_LENGTH_MAX)]
PromptCacheRetention = Literal["in_memory", "24h"]
SchemaName = Annotated[str, Meta(min_length=1, max_length=SCHEMA_NAME_LENGTH_MAX)]
SchemaDescription = Annotated[str, Meta(max_length=SCHEMA_DESCRIPTION_LENGTH_MAX)]
MessageModelId = Annotated[str, Meta(min_length=1, max_length=MESSAGE_MODEL_ID_LENGTH_MAX)]
Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max", "ultracode"]
Verbosity = Literal["low", "medium", "high"]
DefaultOutputBound = Meta(extra_json_schema={"default": OUTPUT_TOKENS_DEFAULT})
NonNegative = Annotated[int, Meta(ge=0)]
Metadata = Annotated[
    dict[
        Annotated[str, Meta(max_length=METADATA_NAME_LENGTH_MAX)],
        Annotated[str, Meta(max_length=METADATA_VALUE_LENGTH_MAX)],
    ],
    Meta(max_length=METADATA_PAIRS_MAX),
]

# Organization.
PATH_ID_LENGTH_MAX = 200
IDEMPOTENCY_KEY_LENGTH_MIN = 8
IDEMPOTENCY_KEY_LENGTH_MAX = 200
POLICY_NAME_LENGTH_MAX = 80
POLICY_DESCRIPTION_LENGTH_MAX = 240
POLICY_RULE_LENGTH_MAX = 20_000
POLICY_PROJECTS_MAX = 1_000
TRIED_TEXT_LENGTH_MAX = 20_000  # OQ-178
THRESHOLD_BASIS_POINTS_MAX = 9_999
REVISION_MAX = 2_147_483_647
NAME_LENGTH_MAX = 200  # OQ-92, OQ-149
ALLOWED_MODELS_MAX = 100  # OQ-86
OVERLAP_SECONDS_MAX = 604_800  # OQ-150
EXPIRES_AT_MAX = 253_402_300_799  # OQ-151: the last second of year 9999
PAGE_SIZE_MAX = 100
PAGE_SIZE_DEFAULT = 20  # OQ-121
REPORT_INSTANT_MAX = EXPIRES_AT_MAX  # OQ-126: what a calendar can hold
COST_PAGE_SIZE_MAX = 180
COST_PAGE_SIZE_DEFAULT = 7  # OQ-126
COST_CURSOR_LENGTH_MAX = 500
COST_FILTER_IDS_MAX = 100
COST_GROUPINGS_MAX = 3
ALERT_PERCENT_DEFAULT = 80  # OQ-170
ALERT_PERCENT_MAX = 100  # OQ-170
ALERT_PERCENTS_MAX = 10  # OQ-143
ALERT_EMAILS_MAX = 10  # OQ-143
ALERT_COUNT_MAX = 100_000  # OQ-143
ALERT_URL_LENGTH_MAX = 2_000  # OQ-143
EMAIL_LENGTH_MAX = 254  # OQ-143
REQUESTS_PER_MINUTE_MAX = 10_000_000  # OQ-139
TOKENS_PER_MINUTE_MAX = 1_000_000_000_000  # OQ-139
CONCURRENT_REQUESTS_MAX = 1_000_000  # OQ-140
OPERATION_NAME_LENGTH_MAX = 64  # OQ-174
ERROR_CODE_LENGTH_MAX = 64  # OQ-174

QUESTION_PATTERN = r"\?\Z"
_BREAKS_AND_CONTROLS = r"\x00-\x1f\x7f-\x9f\u2028\u2029"
_BIDI_CONTROLS = r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
"""Characters that change the order in which a name is shown, so that it looks like another name."""
_INVISIBLE = (
    r"\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200d\u2060-\u2064\u2800\u3164"
    r"\ufe00-\ufe0f\ufeff\uffa0"
)
"""Characters that no font shows. A name with nothing else is blank."""
NAME_PATTERN = rf"\A(?=.*[^\s{_INVISIBLE}])[^{_BREAKS_AND_CONTROLS}{_BIDI_CONTROLS}]+\Z"  # OQ-149
STATUS_PATTERN = r"\A[1-5](?:[0-9]{2}|xx)\Z"
EMAIL_PATTERN = r"\A[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*\Z"
ALERT_URL_PATTERN = r"\Ahttps?://[\x21-\x7e]+\Z"
USD_PATTERN = r"\A[0-9]{1,12}(\.[0-9]{1,12})?\Z"
SIGNED_USD_PATTERN = r"\A-?[0-9]{1,12}(\.[0-9]{1,12})?\Z"

PathId = Annotated[str, Meta(min_length=1, max_length=PATH_ID_LENGTH_MAX)]
PolicyName = Annotated[
    str, Meta(min_length=1, max_length=POLICY_NAME_LENGTH_MAX, pattern=NAME_PATTERN)
]
StoredPolicyName = Annotated[str, Meta(min_length=1, max_length=POLICY_NAME_LENGTH_MAX)]
"""A stored name may be older than the pattern for new names."""
PolicyDescription = Annotated[str, Meta(max_length=POLICY_DESCRIPTION_LENGTH_MAX)]
PolicyRule = Annotated[
    str, Meta(min_length=1, max_length=POLICY_RULE_LENGTH_MAX, pattern=QUESTION_PATTERN)
]
TriedRule = Annotated[str, Meta(min_length=1, max_length=POLICY_RULE_LENGTH_MAX)]
TriedText = Annotated[str, Meta(min_length=1, max_length=TRIED_TEXT_LENGTH_MAX)]
PolicyProjectIds = Annotated[list[str], Meta(max_length=POLICY_PROJECTS_MAX)]
ThresholdBasisPoints = Annotated[int, Meta(ge=1, le=THRESHOLD_BASIS_POINTS_MAX)]
Revision = Annotated[int, Meta(ge=1, le=REVISION_MAX)]
PolicyVersionNumber = Annotated[int, Meta(ge=1, le=REVISION_MAX)]
Name = Annotated[str, Meta(min_length=1, max_length=NAME_LENGTH_MAX, pattern=NAME_PATTERN)]
AllowedModels = Annotated[list[ModelName], Meta(min_length=1, max_length=ALLOWED_MODELS_MAX)]
OverlapSeconds = Annotated[int, Meta(ge=0, le=OVERLAP_SECONDS_MAX)]
ExpiresAt = Annotated[int, Meta(ge=1, le=EXPIRES_AT_MAX)]
PageSize = Annotated[int, Meta(ge=1, le=PAGE_SIZE_MAX)]
ReportInstant = Annotated[int, Meta(ge=0, le=REPORT_INSTANT_MAX)]
CostPageSize = Annotated[int, Meta(ge=1, le=COST_PAGE_SIZE_MAX)]
CostCursor = Annotated[str, Meta(min_length=1, max_length=COST_CURSOR_LENGTH_MAX)]
CostFilter = Annotated[list[PathId], Meta(max_length=COST_FILTER_IDS_MAX)]
Usd = Annotated[str, Meta(pattern=USD_PATTERN)]
StatusFilter = Annotated[str, Meta(pattern=STATUS_PATTERN)]
OperationName = Annotated[str, Meta(min_length=1, max_length=OPERATION_NAME_LENGTH_MAX)]
ErrorCode = Annotated[str, Meta(min_length=1, max_length=ERROR_CODE_LENGTH_MAX)]
AlertPercent = Annotated[int, Meta(ge=1, le=ALERT_PERCENT_MAX)]
AlertPercents = Annotated[list[AlertPercent], Meta(max_length=ALERT_PERCENTS_MAX)]
AlertCount = Annotated[int, Meta(ge=1, le=ALERT_COUNT_MAX)]
AlertUrl = Annotated[str, Meta(max_length=ALERT_URL_LENGTH_MAX, pattern=ALERT_URL_PATTERN)]
AlertEmail = Annotated[str, Meta(max_length=EMAIL_LENGTH_MAX, pattern=EMAIL_PATTERN)]
AlertEmails = Annotated[list[AlertEmail], Meta(max_length=ALERT_EMAILS_MAX)]
RequestsPerMinute = Annotated[int, Meta(ge=1, le=REQUESTS_PER_MINUTE_MAX)]
TokensPerMinute = Annotated[int, Meta(ge=1, le=TOKENS_PER_MINUTE_MAX)]
ConcurrentRequests = Annotated[int, Meta(ge=1, le=CONCURRENT_REQUESTS_MAX)]


CUSTOMER_PERMISSION_NAMES = sorted(permission.value for permission in CUSTOMER_PERMISSIONS)
ADMIN_PERMISSION_NAMES = sorted(permission.value for permission in ADMIN_PERMISSIONS)
CUSTOMER_PERMISSION_PATTERN = rf"\A(?:{'|'.join(CUSTOMER_PERMISSION_NAMES)})\Z"
ADMIN_PERMISSION_PATTERN = rf"\A(?:{'|'.join(ADMIN_PERMISSION_NAMES)})\Z"

CustomerPermissions = Annotated[
    list[
        Annotated[
            str,
            Meta(
                pattern=CUSTOMER_PERMISSION_PATTERN,
                extra_json_schema={"enum": CUSTOMER_PERMISSION_NAMES},
            ),
        ]
    ],
    Meta(min_length=1, max_length=len(CUSTOMER_PERMISSION_NAMES)),
]
AdminPermissions = Annotated[
    list[
        Annotated[
            str,
            Meta(
                pattern=ADMIN_PERMISSION_PATTERN,
                extra_json_schema={"enum": ADMIN_PERMISSION_NAMES},
            ),
        ]
    ],
    Meta(min_length=1, max_length=len(ADMIN_PERMISSION_NAMES)),
]

CostsGrouping = Literal["project_id", "api_key_id", "line_item"]
LABEL_LENGTH_MAX = 128
RequestLabel = Annotated[str, Meta(min_length=1, max_length=LABEL_LENGTH_MAX)]
FORMS = {
    QUESTION_PATTERN: "a question that ends with '?'",
    STATUS_PATTERN: "a status such as 503, or a class such as 5xx",
    EMAIL_PATTERN: "an e-mail address",
    ALERT_URL_PATTERN: "an address such as https://HOST/PATH, percent-encoded",
    USD_PATTERN: "a plain decimal with at most 12 digits before and 12 after its point",
    SIGNED_USD_PATTERN: "a decimal with at most 12 digits before and 12 after its point",
    CHECK_NAME_PATTERN: "1 to 100 lower-case letters, digits, '.', '_' and '-', not first a sign",
    NAME_PATTERN: (
        "a text that is not blank and has no line breaks, control characters or bidirectional "
        "controls"
    ),
    CUSTOMER_PERMISSION_PATTERN: f"one of {', '.join(CUSTOMER_PERMISSION_NAMES)}",
    ADMIN_PERMISSION_PATTERN: f"one of {', '.join(ADMIN_PERMISSION_NAMES)}",
}
"""What each pattern expects, for error messages."""
