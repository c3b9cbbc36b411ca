"""Verify JSON Web Tokens. The settings, never the token, determine the algorithm (RT-22)."""

import math
from typing import Any

import jwt
import orjson

from gateway.auth.authentication import UNKNOWN
from orchestrator.errors import ConfigurationError, Forbidden, Problem, Unauthenticated
from orchestrator.settings import Settings
from orchestrator.turns.access import Caller, Scope
from orchestrator.turns.submission import IDENTIFIER_PATTERN
from orchestrator.types import TenantId, UserId

LEEWAY_S = 30
MIN_KEY_BYTES = 32
PUBLIC_ALGORITHMS = frozenset({"RS256", "ES256"})
REQUIRED = ["exp", "aud", "iss", "sub", "tenant"]


class Tokens:
    """A token verifier with a shared secret, or with several public keys by ``kid``."""

    def __init__(self, keys: dict[str | None, tuple[Any, str]], audience: str, issuer: str) -> None:
        self._keys = keys
        self._audience = audience
        self._issuer = issuer

    def caller(self, token: str) -> Caller:
        """Return the caller that a token identifies.

        Raises Unauthenticated, or Forbidden if the scope grants no rights.
        """
        try:
            key, algorithm = self._keys[self._key_id(token)]
            claims = jwt.decode(
                token,
                key,
                algorithms=[algorithm],
                audience=self._audience,
                issuer=self._issuer,
                leeway=LEEWAY_S,
                options={"require": REQUIRED},
            )
        except (
            jwt.PyJWTError,
            KeyError,
            TypeError,
            ValueError,
        ) as error:  # malformed or forged tokens can cause any of these errors
            raise Unauthenticated(UNKNOWN) from error
        return _caller(claims)

    def _key_id(self, token: str) -> str | None:
        return None if None in self._keys else jwt.get_unverified_header(token).get("kid")


def read_tokens(settings: Settings) -> Tokens | None:
    """Return the configured verifier, or None if tokens are not configured. Raises ConfigurationError."""
    if settings.jwt_key is None and settings.jwt_jwks is None:
        return None
    missing = [
        Problem(
            name, "is required with tokens; otherwise, the gateway would accept tokens for other services"
        )
        for name, value in (
            ("PARLEY_JWT_AUDIENCE", settings.jwt_audience),
            ("PARLEY_JWT_ISSUER", settings.jwt_issuer),
        )
        if not value
    ]
    if settings.jwt_key is not None and settings.jwt_jwks is not None:
        missing.append(Problem("PARLEY_JWT_KEY", "can't be combined with PARLEY_JWT_JWKS"))
    if missing:
        raise ConfigurationError(missing)
    keys = (
        _secret_key(settings.jwt_key.get_secret_value()) if settings.jwt_key else _key_set(settings.jwt_jwks)
    )
    return Tokens(keys, settings.jwt_audience or "", settings.jwt_issuer or "")


def _secret_key(secret: str) -> dict[str | None, tuple[Any, str]]:
    if len(secret.encode()) < MIN_KEY_BYTES:
        raise ConfigurationError([Problem("PARLEY_JWT_KEY", f"needs at least {MIN_KEY_BYTES} bytes")])
    return {None: (secret, "HS256")}


def _key_set(text: str | None) -> dict[str | None, tuple[Any, str]]:
    """Return the supported public keys of a key set with their algorithms, by ``kid``.

    Raises ConfigurationError if the key set is invalid or has no supported key.
    """
    try:
        described = orjson.loads(text or "")["keys"]
        keys = [jwt.PyJWK(one) for one in described]
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError, jwt.PyJWTError) as error:
        raise ConfigurationError(
            [Problem("PARLEY_JWT_JWKS", f"is not a JSON Web Key Set: {error}")]
        ) from error
    usable: dict[str | None, tuple[Any, str]] = {
        key.key_id: (key.key, key.algorithm_name)
        for key in keys
        if key.key_id and key.algorithm_name in PUBLIC_ALGORITHMS
    }
    if not usable:
        raise ConfigurationError([Problem("PARLEY_JWT_JWKS", "contains no RS256 or ES256 key with a kid")])
    return usable


def _caller(claims: dict[str, Any]) -> Caller:
    tenant, user, ends_at = claims["tenant"], claims["sub"], claims["exp"]
    scope = claims.get("scope", Scope.USER.value)
    named = scope.split() if isinstance(scope, str) else scope
    sound = (
        isinstance(tenant, str)
        and IDENTIFIER_PATTERN.fullmatch(tenant)
        and isinstance(user, str)
        and IDENTIFIER_PATTERN.fullmatch(user)
        and isinstance(named, list)
        and isinstance(ends_at, int | float)
        and math.isfinite(ends_at)
    )
    if not sound:
        raise Unauthenticated(UNKNOWN)
    scopes = frozenset(known for known in Scope if known.value in named)
    if not scopes:
        raise Forbidden("The token's scope is not valid here: it must contain 'user' or 'operator'.")
    return Caller(
        TenantId(tenant), scopes, user, UserId(user), f"token:{user}", expires_at=ends_at + LEEWAY_S
    )
