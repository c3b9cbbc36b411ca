"""Mistakes in an HTTP tool's error messages and placeholders (RT-33)."""

from __future__ import annotations

from orchestrator.domain.compile.endpoints import check_http
from orchestrator.domain.compile.problems import Place, Problems, SourceFile
from orchestrator.domain.tool_schema import HttpEntry
from tests.cases import for_each


def _mistakes(inputs: tuple[str, ...] = ("day",), **entry: object) -> list[str]:
    given = HttpEntry.model_validate({"url": "https://example.com/x", **entry})
    problems = Problems()
    check_http(given, inputs, (), Place(problems, SourceFile("http")))
    return [str(problem).removeprefix("http: ") for problem in problems.found]


def test_the_caller_is_named_without_an_input() -> None:
    assert _mistakes(url="https://example.com/{user_id}", headers={"X-Session": "{session_id}"}) == []


def test_an_input_cannot_stand_for_the_caller() -> None:
    assert _mistakes(inputs=("user_id",)) == ["url: {user_id} is reserved for the caller: rename the input"]


@for_each("status", [200, 303, 408, 499, 500])
def test_an_open_outcome_has_no_sentence_of_the_author(status: int) -> None:
    [mistake] = _mistakes(errors={status: "It is taken."})
    assert mistake.startswith(f"errors: {status} does not show")


def test_a_sentence_names_inputs() -> None:
    assert _mistakes(errors={409: "{day} is taken."}) == []
    [mistake] = _mistakes(errors={409: "{dya} is taken."})
    assert "did you mean" in mistake
    assert len(_mistakes(errors={409: " "})) == 1
