"""Scripts of the scripted model: their replies to requests, and their YAML form."""

import json
from pathlib import Path

import pytest

from orchestrator.errors import ConfigurationError
from parley.testing.scripted_model import (
    Answer,
    Computed,
    Drop,
    Fail,
    Hang,
    Raw,
    Request,
    Rule,
    Script,
    ToolUse,
    load_script,
    parse_script,
)
from parley.testing.scripted_model.script import Playback
from parley.testing.scripted_model.wire import embed

EVERYTHING = """
models: [small, large]
embedding_dimensions: 8
default: {text: "I do not know."}
rules:
  - prompt: nlu_think
    match: "(?i)book"
    replies:
      - {status: 429, retry_after_s: 2}
      - {json: {kind: task}, delay_s: 0.1}
  - model: large
    replies:
      - {hang: true}
      - {drop: true}
      - {body: "<html>", media_type: text/html}
      - {tool_calls: [{name: flight_search, arguments: {day: Monday}}]}
      - {text: "one two", finish_reason: length, cut_at: 3, piece_delay_s: 0.1, break_after: 1, usage: false}
"""


def request(
    said: str = "hello", *, prompt: str | None = None, model: str = "small", data: dict | None = None
):
    content = said if data is None else json.dumps(data)
    body = {"model": "small", "messages": [{"role": "user", "content": content}]}
    if prompt:
        body["metadata"] = {"prompt_id": prompt}
    return Request("/v1/chat/completions", body, {})


def test_every_form_of_reply_can_be_written_in_yaml(tmp_path: Path):
    path = tmp_path / "script.yaml"
    path.write_text(EVERYTHING)

    assert load_script(path) == Script(
        models=("small", "large"),
        embedding_dimensions=8,
        default=Answer(text="I do not know."),
        rules=(
            Rule(
                prompt="nlu_think",
                match="(?i)book",
                replies=(Fail(429, retry_after_s=2), Answer(json={"kind": "task"}, delay_s=0.1)),
            ),
            Rule(
                model="large",
                replies=(
                    Hang(),
                    Drop(),
                    Raw("<html>", "text/html"),
                    ToolUse(calls=(("flight_search", {"day": "Monday"}),)),
                    Answer(
                        text="one two",
                        finish_reason="length",
                        cut_at=3,
                        piece_delay_s=0.1,
                        break_after=1,
                        usage=False,
                    ),
                ),
            ),
        ),
    )


def test_all_mistakes_of_a_script_come_at_once(tmp_path: Path):
    with pytest.raises(ConfigurationError) as caught:
        parse_script(
            {"defualt": {}, "rules": [{"replies": []}, {"match": "(", "replies": [{"text": 3}]}]},
            place="bad.yaml",
        )
    places = {problem.place for problem in caught.value.problems}
    assert places == {
        "bad.yaml: $",
        "bad.yaml: $.rules[0].replies",
        "bad.yaml: $.rules[1].match",
        "bad.yaml: $.rules[1].replies[0]",
    }
    with pytest.raises(ConfigurationError, match=r"nowhere\.yaml"):
        load_script(tmp_path / "nowhere.yaml")


def test_the_first_rule_that_applies_answers_in_order_and_then_repeats():
    first, second, other, none = (Answer(text=text) for text in ("first", "second", "other", "none"))
    playback = Playback(
        Script(
            rules=(
                Rule(prompt="nlu_think", match="book", replies=(first, second)),
                Rule(prompt="nlu_think", replies=(other,)),
            ),
            default=none,
        )
    )
    booking = request("book a flight", prompt="nlu_think")

    assert [playback.next_reply(booking) for _ in range(3)] == [first, second, second]
    assert playback.next_reply(request("hello", prompt="nlu_think")) == other
    assert playback.next_reply(request("book", prompt="res_naturalize")) == none


def test_without_a_rule_the_request_is_refused_and_not_answered_by_accident():
    assert Playback(Script()).next_reply(request()) == Fail(400, message="no rule in the script applies")


def test_a_rule_matches_what_was_said_and_not_what_was_said_before():
    playback = Playback(Script(rules=(Rule(match="book", replies=(Answer(text="yes"),)),), default=Fail(400)))

    assert playback.next_reply(request(data={"utterance": "hi", "history": ["book"]})) == Fail(400)
    assert playback.next_reply(request(data={"utterance": "book it", "history": []})) == Answer(text="yes")


def test_the_schema_names_the_prompt_where_there_are_no_metadata():
    body = {"response_format": {"type": "json_schema", "json_schema": {"name": "nlu_think"}}}

    assert Request("/", body, {}).prompt_id == "nlu_think"
    assert Request("/", {}, {}).prompt_id is None


def test_a_reply_is_computed_from_the_request():
    echo = Computed(lambda asked: Answer(text=asked.said.upper()))
    playback = Playback(Script(default=Computed(lambda _: echo)))

    assert playback.next_reply(request("abc")) == Answer(text="ABC")


def test_embeddings_know_words_and_not_their_order():
    assert embed("flight to Oslo", 64) == embed("Oslo to flight", 64)
    assert embed("flight to Oslo", 64) != embed("hotel in Rome", 64)
    assert sum(value * value for value in embed("flight to Oslo", 64)) == pytest.approx(1.0)
    assert embed("...", 4) == [0.0] * 4
