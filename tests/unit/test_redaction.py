"""Redaction of secrets in every form (RT-22)."""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64encode
from urllib.parse import quote, quote_plus, urlencode

import pytest
from pydantic import ValidationError

from orchestrator.errors import ConfigurationError
from orchestrator.redaction import HIDDEN, Redactor
from orchestrator.settings import Settings, known_secrets
from orchestrator.settings.environment import environment_secrets
from orchestrator.settings.fields import ModelEndpoint
from tests.cases import for_each

KNOWN = 'hush/ü "8+&4"\\x=?'
"""A secret with every character that some encoding escapes."""

FORMS = {
    "plain": KNOWN,
    "JSON": json.dumps({"a": KNOWN}),
    "JSON with its letters": json.dumps([KNOWN], ensure_ascii=False),
    "JSON within JSON": json.dumps({"event": "x", "told": KNOWN}),
    "repr": repr({"a": KNOWN}),
    "address": f"https://u:{quote(KNOWN, safe='')}@host/",
    "path": f"https://host/{quote(KNOWN)}/x",
    "form": urlencode({"q": KNOWN}),
    "plus": f"?q={quote_plus(KNOWN)}&b=1",
    **{
        f"base64 after {before} bytes": b64encode(b"u" * before + KNOWN.encode() + b":more").decode()
        for before in range(5)
    },
    "base64 for addresses": urlsafe_b64encode(f"user:{KNOWN}".encode()).decode(),
}

SHAPES = {
    "database": ("postgresql://app:{}@db:5432/parley?sslmode=require", "pa-55-word"),
    "database without a user": ("connection to redis://:{}@redis/0 failed", "pa55word"),
    "password with an at sign": ("amqp://u:{}@host//", "pa@55word"),
    "driver": ("(OperationalError) postgresql+psycopg://a:{}@b/c", "pa55word"),
    "conninfo": ("host=db user=app password={} dbname=x", "pa55word"),
    "settings": ("Settings(jwt_key=x, password='{}', n=1)", "pa55word"),
    "secret of a record": ("Endpoint(api_key='{}')", "k-0123456789"),
    "JSON field": ('{{"api_key": "{}", "n": 1}}', "k-0123456789"),
    "escaped JSON field": ('{{\\"password\\": \\"{}\\"}}', "pa55word"),
    "header": ("Authorization: Bearer {}", "abc.def-0123456789"),
    "header in a mapping": ("{{'Authorization': 'Basic {}', 'Accept': '*'}}", "dXNlcjpwYTU1"),
    "header in pairs": ("[(b'authorization', b'{}')]", "tok-0123456789"),
    "lower case": ("authorization=bearer {}", "abcdef0123456789"),
    "model key": ("Incorrect API key provided: {}.", "sk-proj-abcDEF0123456789_-x"),
    "webhook secret": ("signed with {}", "whsec_abcDEF0123456789-_"),
    "caller's key": ("key {} is revoked", "parley_3f2a91c07d5e8b64_abcDEF-0123456789_"),
    "signed token": ("got {} instead", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJl"),
    "query": ("GET /v1/events?access_token={}&follow=true", "Zx81-abcdef"),
    "query of a tool": ("https://shop/x?api-key={}", "Zx81abcdef"),
}

HARMLESS = (
    "A model call ended. tokens=12 max_tokens=400",
    "postgresql://127.0.0.1:5432/parley",
    "https://shop.example:8443/a@b",
    "redis://redis:6379/0",
    "Bearer tokens are taken from headers.",
    "The password is too short.",
    "session_1:7 turn_9 sk-1",
    "whsec_",
    '{"event": "Task orchestrator.run_session[3f2a91c0] succeeded in 0.2s", "token": null}',
)


@for_each("form", FORMS, ids=str)
def test_a_known_secret_is_hidden_in_every_form(form: str) -> None:
    text = FORMS[form]
    hidden = Redactor([KNOWN]).hide(text)
    assert HIDDEN in hidden
    assert not [
        left for left in (KNOWN, "hush", quote(KNOWN), b64encode(b"hush")[:4].decode()) if left in hidden
    ]


@for_each("shape", SHAPES, ids=str)
def test_what_looks_like_a_secret_is_hidden(shape: str) -> None:
    """These secrets are unknown to the redactor. They come from libraries, receivers or callers."""
    template, secret = SHAPES[shape]
    told = template.format(secret)
    assert secret in told
    hidden = Redactor().hide(told)
    assert secret not in hidden
    assert hidden.replace(HIDDEN, "") in (template.format(""), template.format("").replace("Basic ", ""))


@for_each("line", HARMLESS)
def test_what_only_resembles_a_secret_is_left(line: str) -> None:
    assert Redactor().hide(line) == line


def test_hiding_twice_changes_nothing_more() -> None:
    redactor = Redactor([KNOWN])
    for template, secret in SHAPES.values():
        once = redactor.hide(template.format(secret))
        assert redactor.hide(once) == once


def test_what_is_short_is_not_taken_for_a_secret() -> None:
    """`KEY=1` in the environment must not remove every 1 from the logs."""
    assert Redactor(["1", "dev", ""]).hide("1 dev") == "1 dev"


def test_the_environments_secrets_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Including those of tools, which the settings don't know."""
    monkeypatch.setenv("SHOP_API_KEY", "tool-credential")
    monkeypatch.setenv("OTHER_STORE", "mysql://u:p%40ssword@h/")
    monkeypatch.setenv("FLOWER_BASIC_AUTH", "ann:flowers-for-ann,bob:flowers-for-bob")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=collector-key")
    monkeypatch.setenv("DATABASE_URL_FILE", "/nowhere/at/all")
    found = environment_secrets()
    for secret in ("tool-credential", "p@ssword", "p%40ssword", "flowers-for-bob", "collector-key"):
        assert secret in found


def test_the_settings_secrets_are_known() -> None:
    settings = Settings(
        DATABASE_URL="postgresql://u:data-password@h/",
        REDIS_URL="redis://:redis-password@h/",
        PARLEY_BROKER_URL="amqp://u:broker-password@h/",
        OPENAI_API_KEY="model-password",
        PARLEY_JWT_KEY="jwt-password" * 3,
        PARLEY_MODEL_ENDPOINTS={"x": ModelEndpoint(base_url="http://h", api_key="other-password")},  # type: ignore[arg-type]
    )  # type: ignore[call-arg]
    found = known_secrets(settings)
    for name in ("data", "redis", "broker", "model", "other"):
        assert f"{name}-password" in found
    assert "jwt-password" * 3 in found
    assert "-password" not in f"{settings!r} {settings}"


def test_settings_that_are_wrong_do_not_say_what_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """pydantic quotes its input. For a missing setting, that input is all other settings."""
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.setenv("REDIS_URL", "redis://:redis-password@h/")
    monkeypatch.setenv("OPENAI_API_KEY", "model-password")
    with pytest.raises(ValidationError) as caught:
        Settings()  # type: ignore[call-arg]
    assert "DATABASE_URL" in str(caught.value)
    assert "-password" not in str(caught.value)
    monkeypatch.setenv("DATABASE_URL", "postgresql://u:data-password@h/")
    monkeypatch.setenv("PARLEY_MODEL_ENDPOINTS", '{"x": {"api_key": "other-password"}}')
    with pytest.raises(ValidationError) as caught:
        Settings()  # type: ignore[call-arg]
    assert "base_url" in str(caught.value)
    assert "-password" not in str(caught.value)


def test_a_configuration_error_names_the_file_only(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setenv("OPENAI_API_KEY_FILE", f"{tmp_path}/none")
    monkeypatch.setenv("DATABASE_URL", "postgresql://u:data-password@h/")
    monkeypatch.setenv("REDIS_URL", "redis://h/")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ConfigurationError) as caught:
        Settings()  # type: ignore[call-arg]
    assert "data-password" not in str(caught.value)
