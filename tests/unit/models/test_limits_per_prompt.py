"""CO-2: reasoning effort and token limits per prompt, and the order in which settings override each other."""

import pytest

from orchestrator.models.config import ModelConfig
from orchestrator.models.templates import Prompt, parse_prompt
from orchestrator.ports.language_model import Effort
from tests.cases import for_each

HEAD = "---\nid: nlu_think\nversion: 1\npurpose: p\n{more}---\nText.\n"


def prompt(more: str = "") -> Prompt:
    read = parse_prompt("nlu_think.md", HEAD.format(more=more))
    assert isinstance(read, Prompt)
    return read


@for_each(
    ("more", "config", "tokens", "effort"),
    [
        ("", ModelConfig(), 1024, None),
        ("", ModelConfig(max_tokens=9, effort=Effort.HIGH), 9, Effort.HIGH),
        ("max_tokens: 300\neffort: none\n", ModelConfig(effort=Effort.HIGH), 300, Effort.NONE),
        (
            "max_tokens: 300\neffort: none\n",
            ModelConfig(max_tokens_per_prompt={"nlu_think": 7}, effort_per_prompt={"nlu_think": Effort.LOW}),
            7,
            Effort.LOW,
        ),
    ],
)
def test_the_nearest_value_counts(more: str, config: ModelConfig, tokens: int, effort: Effort | None) -> None:
    assert config.tokens_for(prompt(more)) == tokens
    assert config.effort_for(prompt(more)) is effort


@pytest.mark.parametrize("more", ["max_tokens: many\n", "max_tokens: 0\n", "effort: hard\n"])
def test_an_unusable_limit_is_a_mistake_of_the_prompt(more: str) -> None:
    (problem,) = parse_prompt("nlu_think.md", HEAD.format(more=more))
    assert more.split(":", maxsplit=1)[0] in problem.message
