"""Endpoints that the environment configures, and their sharing (CO-2, UI-2)."""

from __future__ import annotations

import pytest

from orchestrator.adapters.models.pool import ModelPool, read_endpoints
from orchestrator.adapters.models.providers import Endpoint
from orchestrator.models.budget import Price
from orchestrator.models.config import ModelChoice, read_model_config
from orchestrator.settings import OPENAI_URL, Settings
from tests.configuration import default_config


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "PARLEY_MODEL", "PARLEY_MODEL_ENDPOINTS"):
        monkeypatch.delenv(name, raising=False)


def settings(**more) -> Settings:
    return Settings(DATABASE_URL="postgresql://", REDIS_URL="redis://", **more)


def pool(*providers: str) -> ModelPool:
    endpoints = {name: Endpoint(base_url=f"http://{name}.test/v1") for name in providers}
    return ModelPool(endpoints, model="usual")


@pytest.mark.parametrize("empty", [{}, {"OPENAI_API_KEY": "", "OPENAI_BASE_URL": ""}])
def test_without_key_and_address_there_is_none(empty):
    """UI-2"""
    assert read_endpoints(settings(**empty)) == {}
    assert ModelPool({}, model="usual").engineer(default_config()) is None


@pytest.mark.parametrize("key", [{}, {"OPENAI_API_KEY": ""}])
def test_an_address_without_a_key_is_an_endpoint(key):
    endpoint = read_endpoints(settings(OPENAI_BASE_URL="http://here.test/v1", **key))["default"]

    assert (endpoint.base_url, endpoint.api_key) == ("http://here.test/v1", "")
    assert endpoint.extra_body == {}


@pytest.mark.parametrize("url", [{}, {"OPENAI_BASE_URL": f"{OPENAI_URL}/"}])
def test_a_key_alone_means_openai_where_nothing_is_stored(url):
    endpoint = read_endpoints(settings(OPENAI_API_KEY="sk-1", **url))["default"]

    assert (endpoint.provider, endpoint.api_key, endpoint.store) == ("openai", "sk-1", False)
    assert "sk-1" not in repr(endpoint)


def test_a_model_names_its_provider(monkeypatch: pytest.MonkeyPatch):
    """CO-2: `provider:name`, unless the name is that of a model at a compatible URL."""
    monkeypatch.delenv("MISTRAL_API_KEY", raising=False)
    assert read_endpoints(settings(PARLEY_MODEL="anthropic:claude"))["anthropic"].provider == "anthropic"
    url = {"OPENAI_BASE_URL": "http://here.test/v1"}
    assert {*read_endpoints(settings(PARLEY_MODEL="mistral:7b", **url))} == {"default"}

    monkeypatch.setenv("MISTRAL_API_KEY", "key")
    assert {*read_endpoints(settings(PARLEY_MODEL="mistral:7b", **url))} == {"default", "mistral"}


def test_further_endpoints_come_as_json(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(
        "PARLEY_MODEL_ENDPOINTS", '{"local": {"base_url": "http://l.test/v1", "api_key": "k"}}'
    )
    endpoints = read_endpoints(settings())

    assert endpoints["local"].base_url == "http://l.test/v1"
    assert endpoints["local"].api_key == "k"
    assert "'k'" not in repr(settings())


def test_domains_with_the_same_models_share_an_engineer():
    """They also share its breaker. Other timeouts need another engineer."""
    models = pool("default")
    travel, analytics = default_config({"description": "a"}), default_config({"description": "b"})
    slow = default_config({"models": {"timeout_s": 60}})

    assert models.engineer(travel) is models.engineer(analytics)
    assert models.engineer(slow) is not models.engineer(travel)


def test_a_domain_whose_models_have_no_endpoint_gets_none():
    elsewhere = default_config({"models": {"default": {"model": "m", "provider": "elsewhere"}}})

    assert pool("default").engineer(elsewhere) is None
    assert pool("elsewhere").engineer(elsewhere) is not None


def test_the_domains_section_becomes_the_configuration_of_calls():
    """CO-2, CO-5"""
    config = default_config(
        {
            "models": {
                "per_prompt": {"nlu_think": {"model": "small", "provider": "local"}, "slot_fill": None},
                "fallback": "spare",
                "prices": {"small": {"prompt": 1, "completion": 2}},
            },
            "budgets": {"cost_per_day": 1.5, "tokens_per_turn": 900},
        }
    )
    calls = read_model_config(config, ModelChoice("usual"))

    assert calls.choices("nlu_think") == (ModelChoice("small", "local"), ModelChoice("spare"))
    assert calls.choices("slot_fill") == (ModelChoice("usual"), ModelChoice("spare"))
    assert calls.prices == {"small": Price(1, 2)}
    assert (calls.budgets.day.cost_micros, calls.budgets.turn.tokens) == (1_500_000, 900)
