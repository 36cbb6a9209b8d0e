"""Verification of ID tokens: the signature by the provider's keys, and the claims. No I/O."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, cast

from joserfc import jwk, jwt
from joserfc.errors import JoseError
from msgspec import Struct

CLOCK_SKEW_SECONDS: Final = 60
"""How far the clocks of the provider and of the gateway may differ."""
SUBJECT_LENGTH_MAX: Final = 255
# Asymmetric ones alone: a provider's public key must never be taken for a shared secret.
_KEY_TYPES: Final = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), "RSA"),
    **dict.fromkeys(("ES256", "ES384", "ES512"), "EC"),
    **dict.fromkeys(("EdDSA", "Ed25519"), "OKP"),
}
_PUBLIC_MEMBERS: Final = frozenset({"kty", "n", "e", "crv", "x", "y"})

JsonObject = dict[str, Any]


class InvalidIdToken(Exception):
    """The ID token is not one of this provider for this client and this sign-in."""


class UnknownSigningKey(InvalidIdToken):
    """No key of the provider fits the token's header; it may have new ones."""


class ExpectedToken(Struct, frozen=True, kw_only=True):
    """What an ID token must say."""

    issuer: str
    client_id: str
    nonce: str


def verified_claims(
    token: str, keys: Sequence[JsonObject], expected: ExpectedToken, *, now: datetime
) -> JsonObject:
    """Return the claims of a valid token.

    Raises `UnknownSigningKey` or `InvalidIdToken`. Keys and addresses of keys in the token itself
    are ignored.
    """
    try:
        decoded = jwt.decode(
            token,
            lambda message: _signing_key(message.headers(), keys),
            algorithms=list(_KEY_TYPES),
        )
        jwt.JWTClaimsRegistry(
            now=int(now.timestamp()),
            leeway=CLOCK_SKEW_SECONDS,
            iss={"essential": True, "value": expected.issuer},
            aud={"essential": True, "value": expected.client_id},
            nonce={"essential": True, "value": expected.nonce},
            sub={"essential": True},
            exp={"essential": True},
            iat={"essential": True},
        ).validate(decoded.claims)
    except (JoseError, ValueError, TypeError) as failure:
        raise InvalidIdToken(type(failure).__name__) from None
    _check_presenter(decoded.claims, expected.client_id)
    if len(decoded.claims["sub"]) > SUBJECT_LENGTH_MAX or not isinstance(
        decoded.claims["nonce"], str
    ):
        raise InvalidIdToken
    return decoded.claims


def _signing_key(header: Mapping[str, Any], keys: Sequence[JsonObject]) -> jwk.Key:
    """Return the one public key of the provider that the header names."""
    algorithm, key_id = header.get("alg"), header.get("kid")
    fitting = [
        key
        for key in keys
        if key.get("kty") == _KEY_TYPES.get(str(algorithm), "")
        and key.get("use", "sig") == "sig"
        and key.get("alg", algorithm) == algorithm
        and (key_id is None or key.get("kid") == key_id)
    ]
    if len(fitting) != 1:
        raise UnknownSigningKey
    public = {name: value for name, value in fitting[0].items() if name in _PUBLIC_MEMBERS}
    return jwk.import_key(public)


def _check_presenter(claims: JsonObject, client_id: str) -> None:
    """Raise if the token was issued to another client, even if this one is in its audience."""
    has_others = isinstance(claims["aud"], list) and claims["aud"] != [client_id]
    if claims.get("azp", None if has_others else client_id) != client_id:
        raise InvalidIdToken


def groups_in(claims: JsonObject, name: str) -> list[str] | None:
    """Return the groups in a claim, or None if there is no such claim.

    `name` is the name of a claim, or a path with dots, such as `realm_access.roles`.
    """
    value: Any = claims
    for step in (name,) if name in claims else name.split("."):
        value = cast("JsonObject", value).get(step) if isinstance(value, dict) else None
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list):
        return None
    return [each for each in cast("list[object]", value) if isinstance(each, str)]
