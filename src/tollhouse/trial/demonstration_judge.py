"""The judge of a trial: decides by patterns, always in the same way.

It knows whether a text has words that the rule quotes, or something of a kind that the rule names.
A small model says yes to nearly every question, which makes policies look broken. To a rule that it
does not know this judge says neither yes nor no.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from tollhouse.base.policies import DEMONSTRATION_JUDGE
from tollhouse.contract.bounds import FreeObject

CARD_NUMBERS: Final = "Does the text contain the number of a payment card?"
PASSWORDS: Final = "Does the text tell a password?"
EMAIL_ADDRESSES: Final = "Does the text contain an e-mail address?"

_QUESTION: Final = re.compile(r'^Question: (".*")$', re.MULTILINE)
_DATA: Final = re.compile(r"^DATA (\S+)\n(.*)\nEND \1$", re.MULTILINE)
_DIGITS: Final = re.compile(r"(?<![\d.])\d(?:[ -]?\d){12,18}(?![\d.]\d)")
_ISSUERS: Final = re.compile(
    r"4(?:\d{12}|\d{15}|\d{18})|(?:5[1-5]|2[2-7])\d{14}|3[47]\d{13}|6(?:011|5\d\d)\d{12}"
)
_PASSWORD: Final = re.compile(
    r"\b(?:pass(?:word|phrase|wd)|pwd|pin)\b[\"'`]*(?: (?:for|of|to) [\w .-]{1,30}?)?"
    r"\s*(?:is|=|:)\s*"
    r"[\"'`]*(?=[^\s\"'`]*[\d!@#$%^&*])[^\s\"'`]{4,}",
    re.IGNORECASE,
)
_EMAIL: Final = re.compile(r"\b[A-Za-z0-9._%+-]+@(?:[A-Za-z0-9-]+\.)+[A-Za-z]{2,}\b")
_PHONE: Final = re.compile(
    r"(?<![\w.+-])(?!\d{4}-\d\d-\d\d)(?!\d\d?[./]\d\d?[./]\d{4})"
    r"(?:\+|00)?(?:\(?\d{1,5}\)?[ /.-]){1,4}\d{2,8}(?![\w-])(?!\.\d)"
)
_PHONE_DIGITS: Final = range(7, 16)
_LINK: Final = re.compile(r"\b(?:https?://|www\.)[^\s<>\"']+", re.IGNORECASE)
_OCTET: Final = r"(?:25[0-5]|2[0-4]\d|1?\d?\d)"
_IP_ADDRESS: Final = re.compile(rf"(?<![\w.])(?:{_OCTET}\.){{3}}{_OCTET}(?![\w]|\.\d)")
_IBAN: Final = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b")
_QUOTED: Final = re.compile(r'"([^"]+)"|“([^”]+)”')
_QUOTING: Final = re.compile(
    r"(?:does|do|is|are|the|a|an|any|one|of|these|this|text|message|request|prompt|answer|response|"
    r"user|it|contain|mention|include|say|name|use|have|words?|phrases?|names?|terms?|or|[\s,:?])+"
)
"""What a rule has beside the words that it quotes: `or` is known, `and` and `not` are not."""
_NAMING: Final = re.compile(
    r"Does the (?:text|message|request|prompt|answer|response) "
    r"(?:contain|include|mention|have|tell|name) (?:an? |any |the )?([\w -]+)\?",
    re.IGNORECASE,
)
_ESCAPED: Final = re.compile(r"\\+(?:([nrt])|u([0-9a-fA-F]{4}))?")
_LIKELY, _UNLIKELY = -0.01, -4.6
"""Log probabilities of 0.99 and 0.01."""


def has_card_number(text: str) -> bool:
    """Return whether a number has the form of an issuer's cards and a right check digit."""
    numbers = (re.sub(r"[ -]", "", found.group()) for found in _DIGITS.finditer(text))
    return any(_ISSUERS.fullmatch(number) and _is_luhn(number) for number in numbers)


def has_password(text: str) -> bool:
    """Return whether a value with a digit or a special character is called a password."""
    return _PASSWORD.search(text) is not None


def has_email_address(text: str) -> bool:
    """Return whether the text has an address with a domain."""
    return _EMAIL.search(text) is not None


def has_phone_number(text: str) -> bool:
    """Return whether groups of digits have the form of a telephone number."""
    found = (re.sub(r"\D", "", each.group()) for each in _PHONE.finditer(text))
    return any(len(digits) in _PHONE_DIGITS for digits in found)


def has_iban(text: str) -> bool:
    """Return whether the text has an IBAN with a right check number."""
    numbers = (each.group().replace(" ", "") for each in _IBAN.finditer(text))
    return any(_is_iban(number) for number in numbers)


def has_quoted_words(rule: str, text: str) -> bool | None:
    """Return whether the text has what the rule quotes, or None if the rule asks something else."""
    quoted = ["".join(found) for found in _QUOTED.findall(rule)]
    if not quoted or _QUOTING.fullmatch(_QUOTED.sub("", rule).lower()) is None:
        return None
    words = "|".join(map(re.escape, quoted))
    return re.search(rf"(?<!\w)(?:{words})(?!\w)", text, re.IGNORECASE) is not None


KINDS: Final[Mapping[str, Callable[[str], bool]]] = {
    **dict.fromkeys(
        ("card number", "credit card number", "payment card number", "credit card"), has_card_number
    ),
    "password": has_password,
    **dict.fromkeys(("e-mail address", "email address", "e-mail", "email"), has_email_address),
    **dict.fromkeys(("phone number", "telephone number"), has_phone_number),
    **dict.fromkeys(("link", "url", "web address"), lambda text: _LINK.search(text) is not None),
    **dict.fromkeys(("ip address",), lambda text: _IP_ADDRESS.search(text) is not None),
    **dict.fromkeys(("iban", "bank account number"), has_iban),
}
"""What a rule may name, as in "Does the text contain a phone number?"."""
RULES: Final[Mapping[str, Callable[[str], bool]]] = {
    CARD_NUMBERS: has_card_number,
    PASSWORDS: has_password,
    EMAIL_ADDRESSES: has_email_address,
}


def verdict(prompt: str) -> bool | None:
    """Return the answer to a judge's prompt, or None for a rule that is not known."""
    questions, data = _QUESTION.findall(prompt), _DATA.search(prompt)
    if not questions or data is None:
        return None
    rule, text = msgspec.json.decode(questions[-1], type=str), _ESCAPED.sub(_plain, data.group(2))
    decide = RULES.get(rule) or _named_kind(rule)
    return has_quoted_words(rule, text) if decide is None else decide(text)


def completion(prompt: str) -> FreeObject:
    """Return the chat completion with the answer's log probabilities."""
    match verdict(prompt):
        case None:
            words = ["Unknown"]
        case is_yes:
            words = ["Yes", "No"] if is_yes else ["No", "Yes"]
    top = [
        {"token": word, "logprob": logprob, "bytes": None}
        for word, logprob in zip(words, (_LIKELY, _UNLIKELY), strict=False)
    ]
    return {
        "id": "chatcmpl-demonstration",
        "object": "chat.completion",
        "created": 0,
        "model": DEMONSTRATION_JUDGE,
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": words[0]},
                "logprobs": {"content": [{**top[0], "top_logprobs": top}]},
                "finish_reason": "length",
            }
        ],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }


def _named_kind(rule: str) -> Callable[[str], bool] | None:
    if (named := _NAMING.fullmatch(rule)) is None:
        return None
    kind = named[1].lower()
    spellings = (kind, kind.removesuffix("s"), kind.removesuffix("es"))
    return next((KINDS[each] for each in spellings if each in KINDS), None)


def _plain(escape: re.Match[str]) -> str:
    """Return what an escape of JSON stands for; white space for the end of a line."""
    if escape[2] is not None:
        return chr(int(escape[2], 16))
    return " " if escape[1] is not None else ""


def _is_iban(number: str) -> bool:
    digits = "".join(str(int(character, 36)) for character in number[4:] + number[:4])
    return int(digits) % 97 == 1


def _is_luhn(number: str) -> bool:
    doubled = (sum(divmod(2 * int(digit), 10)) for digit in number[-2::-2])
    return (sum(map(int, number[-1::-2])) + sum(doubled)) % 10 == 0
