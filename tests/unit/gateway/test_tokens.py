"""Valid tokens, and every way in which a token can be invalid (RT-22)."""

from __future__ import annotations

import time
from typing import Any

import jwt
import orjson
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from gateway.auth.tokens import Tokens, read_tokens
from orchestrator.errors import ConfigurationError, Unauthenticated
from orchestrator.settings import Settings
from orchestrator.turns.access import Scope
from tests.cases import for_each
from tests.unit.gateway.guarded import guarded_house

SECRET = "a secret of at least thirty-two bytes"
OURS = {"PARLEY_JWT_AUDIENCE": "parley", "PARLEY_JWT_ISSUER": "https://id.example"}
RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER_RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)


def settings(**values: Any) -> Settings:
    return Settings(DATABASE_URL="postgresql://x/y", REDIS_URL="redis://x", **{**OURS, **values})


def tokens(**values: Any) -> Tokens:
    found = read_tokens(settings(**values))
    assert found is not None
    return found


def key_set(*, algorithm: str = "RS256") -> str:
    described = jwt.algorithms.RSAAlgorithm.to_jwk(RSA.public_key(), as_dict=True)
    return orjson.dumps({"keys": [{**described, "kid": "one", "alg": algorithm, "use": "sig"}]}).decode()


def claims(**changed: Any) -> dict[str, Any]:
    usual = {
        "iss": "https://id.example",
        "aud": "parley",
        "sub": "ann",
        "tenant": "acme",
        "exp": time.time() + 60,
    }
    return {name: value for name, value in {**usual, **changed}.items() if value is not None}


def signed(**changed: Any) -> str:
    return jwt.encode(claims(**changed), SECRET, algorithm="HS256")


def test_a_token_names_tenant_user_and_scopes() -> None:
    caller = tokens(PARLEY_JWT_KEY=SECRET).caller(signed(scope="openid operator"))
    assert (caller.tenant_id, caller.user_id, caller.scopes) == ("acme", "ann", {Scope.OPERATOR})


@for_each("scope", ["admin", "openid profile", "", [], ["USER"]])
async def test_a_scope_that_names_nothing_known_gives_nothing(scope: Any) -> None:
    async with guarded_house(tokens=tokens(PARLEY_JWT_KEY=SECRET)) as house:
        for method, path in (("GET", "/v1/whoami"), ("POST", "/v1/sessions"), ("POST", "/v1/tickets")):
            answer = await house.ask(signed(scope=scope), method, path, json={})
            assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")


def test_without_a_scope_it_is_a_user() -> None:
    caller = tokens(PARLEY_JWT_KEY=SECRET).caller(signed())
    assert (caller.only_user, caller.operates) == ("ann", False)


@for_each(
    "changed",
    [
        {"exp": 1_000_000_000},
        {"exp": None},
        {"nbf": 9_000_000_000},
        {"aud": "another service"},
        {"aud": None},
        {"iss": "https://evil.example"},
        {"tenant": ""},
        {"tenant": "acme\n"},
        {"sub": "ann/../bob"},
    ],
    ids=str,
)
def test_a_token_that_lacks_something_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(Unauthenticated):
        tokens(PARLEY_JWT_KEY=SECRET).caller(signed(**changed))


def test_the_algorithm_is_not_the_tokens_choice() -> None:
    """Neither `none`, nor RS256's public key as a secret of HS256."""
    public = RSA.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    unsigned = jwt.encode(claims(), None, algorithm="none", headers={"kid": "one"})
    head, body, _ = jwt.encode(claims(), SECRET, algorithm="HS256", headers={"kid": "one"}).split(".")
    confused = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256)
    signature = jwt.utils.base64url_encode(confused.sign(f"{head}.{body}".encode(), public)).decode()
    for token in (unsigned, f"{head}.{body}.{signature}"):
        with pytest.raises(Unauthenticated):
            tokens(PARLEY_JWT_JWKS=key_set()).caller(token)
        with pytest.raises(Unauthenticated):
            tokens(PARLEY_JWT_KEY=SECRET).caller(unsigned)


def test_public_keys_are_found_by_their_name() -> None:
    known = tokens(PARLEY_JWT_JWKS=key_set())
    good = jwt.encode(claims(), RSA, algorithm="RS256", headers={"kid": "one"})
    assert known.caller(good).user_id == "ann"
    for key, headers in ((RSA, {"kid": "two"}), (RSA, {}), (OTHER_RSA, {"kid": "one"})):
        with pytest.raises(Unauthenticated):
            known.caller(jwt.encode(claims(), key, algorithm="RS256", headers=headers))


@for_each(
    ("values", "named"),
    [
        ({"PARLEY_JWT_KEY": "short"}, "PARLEY_JWT_KEY"),
        ({"PARLEY_JWT_KEY": SECRET, "PARLEY_JWT_AUDIENCE": ""}, "PARLEY_JWT_AUDIENCE"),
        ({"PARLEY_JWT_KEY": SECRET, "PARLEY_JWT_ISSUER": ""}, "PARLEY_JWT_ISSUER"),
        ({"PARLEY_JWT_KEY": SECRET, "PARLEY_JWT_JWKS": "{}"}, "PARLEY_JWT_JWKS"),
        ({"PARLEY_JWT_JWKS": "nonsense"}, "PARLEY_JWT_JWKS"),
        ({"PARLEY_JWT_JWKS": '{"keys": []}'}, "PARLEY_JWT_JWKS"),
        ({"PARLEY_JWT_JWKS": '{"keys": [3]}'}, "PARLEY_JWT_JWKS"),
        ({"PARLEY_JWT_JWKS": key_set(algorithm="RS512")}, "PARLEY_JWT_JWKS"),
    ],
)
def test_settings_that_make_no_sense_are_named(values: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigurationError, match=named):
        read_tokens(settings(**values))


async def test_a_token_opens_the_gateway() -> None:
    async with guarded_house(tokens=tokens(PARLEY_JWT_KEY=SECRET)) as house:
        session = await house.session(signed())
        assert (await house.ask(signed(), "GET", f"/v1/sessions/{session}")).json()["user_id"] == "ann"
        other = await house.ask(signed(sub="bob"), "GET", f"/v1/sessions/{session}")
        assert other.status_code == 404
        assert (await house.ask(signed(tenant="bolt"), "GET", f"/v1/sessions/{session}")).status_code == 404
        assert (await house.ask("a.b.c", "GET", "/v1/sessions")).status_code == 401
