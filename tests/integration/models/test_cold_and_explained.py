"""CO-2: local models are loaded before users wait, and `explain` reports that a model did not answer."""

import pytest

from lab.domain_evaluation import explain_sentence
from orchestrator.adapters.models.pool import ModelPool
from orchestrator.adapters.models.providers import Endpoint
from parley.stack import note_models
from parley.testing.scripted_model import Answer, Rule, Script, ScriptedModel
from tests.configuration import default_config
from tests.integration.models.quirks import openai_error, sent


async def test_a_local_server_is_asked_one_word_before_users_ask() -> None:
    """https://github.com/ollama/ollama/issues/8006"""
    script = Script(rules=(Rule(prompt="warm_up", replies=(Answer(text="Hi", delay_s=0.3),)),))
    with ScriptedModel(script) as model:
        pool = ModelPool({"default": Endpoint(base_url=model.base_url)}, model="small")
        pool.engineer(default_config({"models": {"timeout_s": 0.1}}))
        await pool.warm_up()
        await pool.aclose()

        (request,) = model.requests

    assert (request.model, request.body["max_tokens"]) == ("small", 1)


async def test_a_provider_that_charges_is_not_warmed() -> None:
    with ScriptedModel(Script()) as model:
        endpoint = Endpoint(provider="openai-chat", base_url=model.base_url, api_key="sk-1")
        pool = ModelPool({"default": endpoint}, model="small")
        assert pool.engineer(default_config()) is not None
        await pool.warm_up()
        await pool.aclose()

        assert model.requests == []


@pytest.mark.parametrize(
    ("variables", "told"),
    [
        ({}, "OPENAI_API_KEY is not set, so Parley only uses the local classifier"),
        ({"OPENAI_BASE_URL": "{url}/v1", "PARLEY_MODEL": "small"}, "{url}/v1 is responding and has small"),
        (
            {"OPENAI_BASE_URL": "{url}/v1"},
            "does not list gpt-4o-mini. set PARLEY_MODEL to a listed model",
        ),
        ({"OPENAI_BASE_URL": "{url}"}, "lacks /v1; turns continue with the local classifier. use {url}/v1"),
        ({"PARLEY_MODEL": "anthropic:claude-sonnet-4-5"}, "anthropic is configured"),
    ],
    ids=range(5),
)
def test_the_start_says_which_model_answers(
    variables: dict[str, str], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Local servers have no `gpt-4o-mini`, and their URL ends with /v1."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "PARLEY_MODEL", "PARLEY_MODEL_ENDPOINTS"):
        monkeypatch.delenv(name, raising=False)
    said: list[str] = []
    with ScriptedModel(Script(models=("small",))) as model:
        url = model.base_url.removesuffix("/v1")
        for name, value in variables.items():
            monkeypatch.setenv(name, value.format(url=url))
        note_models(said.append)

    [line] = said
    assert told.format(url=url) in line


async def test_explain_tells_that_the_model_did_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    refusal = sent(openai_error("key", code="invalid_api_key"), 401)
    with ScriptedModel(Script(default=refusal)) as model:
        monkeypatch.setenv("OPENAI_BASE_URL", model.base_url)
        found = await explain_sentence(
            "could you get me something to Madrid, maybe around noon?", "travel", "smol"
        )

    assert found["model_problem"] == "model_not_allowed"
    assert (found["endpoint"]["status"], found["endpoint"]["code"]) == (401, "invalid_api_key")
    assert found["confidence"] < 1
    assert any("did not respond (model_not_allowed)" in reader["said"] for reader in found["readers"])
