"""A turn's output in the terminal, and the meaning of input lines, without a gateway or terminal."""

from __future__ import annotations

import io
import threading
from typing import Any

from rich.console import Console

from parley.terminal.answers import Answers
from parley.terminal.commands import COMMANDS, Talk, find_command, find_unknown
from parley.terminal.conversation import Conversation, Place, line_of
from parley.terminal.show import show_turn
from parley.terminal.streamed import StreamedWords
from parley.terminal.words import choose_action, clean, describe_status, plain
from parley_client import SessionEvent
from tests.cases import for_each

YES_NO = [{"label": "Yes", "name": "confirm", "payload": {}}, {"label": "No", "name": "deny", "payload": {}}]


def make_turn(**parts: Any) -> dict[str, Any]:
    base = {"turn_id": "turn_1", "status": "done", "reply": "Hello.", "flows": [], "actions": []}
    frames = [parts.pop("frame")] if "frame" in parts else []
    return {**base, "interaction": {"kind": "none"}, "flags": {}, "frames": frames, **parts}


def shown(turn: dict[str, Any]) -> str:
    out = io.StringIO()
    show_turn(Console(file=out, width=100, highlight=False, markup=False), turn)
    return out.getvalue()


def make_frame(kind: str, data: Any, **block: Any) -> dict[str, Any]:
    return {"data": data, "block": {"type": kind, "title": "Title", "note": None, **block}}


def make_table(rows: list[dict[str, Any]], total: int | None = None) -> dict[str, Any]:
    columns = [{"name": name, "label": name, "type": "text"} for name in rows[0]]
    return make_frame("table", rows, columns=columns, rows=total or len(rows), pages=2, page=1)


# Lines.


@for_each(
    ("kind", "text", "label"),
    [
        ("confirmation", "1", "Yes"),
        ("confirmation", "2", "No"),
        ("confirmation", "/2", "No"),
        ("confirmation", "3", None),
        ("confirmation", "0", None),
        ("confirmation", "2 bags", None),
        ("confirmation", "²", None),
        ("open", "1", None),
        ("open", "/1", "Yes"),
        ("none", "2", None),
    ],
)
def test_a_number_chooses_where_one_is_asked_for(kind: str, text: str, label: str | None) -> None:
    action = choose_action(make_turn(actions=YES_NO, interaction={"kind": kind}), text)

    assert (action["label"] if action else None) == label


def test_before_the_first_turn_a_number_is_a_message() -> None:
    assert choose_action(None, "1") is None


def test_slashes_of_the_domain_are_messages() -> None:
    assert find_command("/bookings") is None
    assert find_command("stack") is None
    assert find_command("/page 2") is None
    assert find_command("/stack  2 ") is COMMANDS["/stack"][0]
    assert find_command("/exit") is find_command("/quit") is COMMANDS["/quit"][0]


@for_each(
    ("line", "word"),
    [
        ("/qiut", "/qiut"),
        ("/bookings of today", "/bookings"),
        ("/9", "/9"),
        ("/page 2", None),
        ("/etc/hosts is a file", None),
        ("/", None),
        ("either/or", None),
    ],
)
def test_a_command_that_the_chat_lacks_is_noticed(line: str, word: str | None) -> None:
    assert find_unknown(line) == word


def test_the_status_line_names_the_tasks_the_present_one_first() -> None:
    flows = [
        {"dact": "plan_trip", "state": "Pending", "reason": "subflow_wait"},
        {"dact": "book_flight", "state": "Active", "reason": None},
    ]
    assert describe_status(make_turn(flows=flows), " · plan 1/3") == (
        "book_flight (active) ‹ plan_trip (pending, subflow wait) · plan 1/3"
    )
    assert describe_status(None) == "no open task"


# Text of others.


def test_nothing_moves_the_cursor() -> None:
    evil = "a\x1b[2Jb\x9b31mc\r\x07\u202ed"
    assert clean(evil) == "a[2Jb31mcd"
    actions = [{"label": evil, "name": "x", "payload": {}}]
    frame = make_table([{evil: evil}, {evil: "x"}])
    text = shown(make_turn(reply=evil, actions=actions, frame=frame))
    assert not set(text) & set("\x1b\x9b\r\x07\u202e")


def test_backslashes_of_the_markup_are_not_shown() -> None:
    assert plain(r"\[click\](x) and \<b\>") == "[click](x) and <b>"


# Blocks.


def test_a_table_shows_what_the_words_do_not_list() -> None:
    rows = [{"name": f"row{place}", "value": place} for place in range(4)]
    listed = "\n".join(f"- row{place}" for place in range(4))

    assert "row3" in shown(make_turn(frame=make_table(rows)))
    assert shown(make_turn(reply=listed, frame=make_table(rows))).count("row3") == 1
    assert "4 of 900 rows, page 1 of 2: /page N" in shown(
        make_turn(reply=listed, frame=make_table(rows, 900))
    )


def test_a_card_shows_what_the_words_do_not_say() -> None:
    items = [{"label": name, "value": value} for name, value in (("seat", "4A"), ("bags", 2), ("meal", True))]
    card = make_frame("card", {}, items=items)

    assert "seat" in shown(make_turn(frame=card))
    assert "seat" not in shown(make_turn(reply="4A, 2, yes", frame=card))


def test_replies_are_numbered_as_they_are_chosen() -> None:
    assert "[1] Yes  [2] No" in shown(make_turn(actions=YES_NO, interaction={"kind": "confirmation"}))
    assert "[/1] Yes  [/2] No" in shown(make_turn(actions=YES_NO))


@for_each(
    ("role", "form", "content", "line"),
    [
        ("user", "text", "{a brace}", "You: {a brace}"),
        ("agent", "text", "Booked.", "Parley: Booked."),
        ("user", "action", '{"name":"confirm","payload":{"flow_id":"flow_1"}}', "You: (confirm)"),
        ("system", "action", '{"name":"approve","payload":{}}', "system: (approve)"),
        ("user", "action", "[forgotten]", "You: [forgotten]"),
        (
            "operator",
            "action",
            '{"repairs":[{"kind":"take_over"},{"kind":"say","text":"Hi."}],"why":"They rang.","by":"ann"}',
            "operator: (take over, say: They rang.)",
        ),
    ],
)
def test_the_history_names_actions_instead_of_quoting_them(
    role: str, form: str, content: str, line: str
) -> None:
    assert line_of({"role": role, "form": form, "content": content}) == line


def test_a_form_says_how_to_fill_it_in() -> None:
    form = {"kind": "form", "fields": [{"label": "day"}, {"label": "place"}]}
    assert "Still needed: day, place" in shown(make_turn(interaction=form))


def make_chart(mark: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    x, y = rows[0]
    return {
        "mark": {"type": mark},
        "encoding": {"x": {"field": x.replace(".", "\\.")}, "y": {"field": y}},
        "data": {"values": rows},
    }


def test_a_chart_is_named() -> None:
    spec = make_chart("bar", [{"color": "red", "n": 10}])
    assert "a bar chart, shown in the inspector" in shown(
        make_turn(frame=make_frame("chart", spec, chart_type="bar"))
    )


# Streamed text.


def stream(*pieces: tuple[int, str], turn_id: str = "turn_1") -> StreamedWords:
    words = StreamedWords(lambda _text: None, lambda: None)
    words.begin()
    for offset, text in pieces:
        words.take(token(offset, text, turn_id))
    return words


def token(offset: int, text: str, turn_id: str = "turn_1") -> SessionEvent:
    return SessionEvent("session_1", "token", turn_id, {"offset": offset, "text": text}, None)


@for_each(
    ("pieces", "written"),
    [
        ([(0, "All "), (4, r"is \<b\>"), (0, "All "), (0, r"All is")], "Parley: All is <b>"),
        ([(0, "Wrong words"), (0, "")], ""),
        ([(0, "One way"), (0, "Another"), (7, " way")], "Parley: Another way"),
        ([(5, "words")], ""),
    ],
    ids=["the same again", "taken back", "another attempt", "a piece is missing"],
)
def test_the_words_so_far_are_those_of_the_last_attempt(pieces: list[tuple[int, str]], written: str) -> None:
    assert stream(*pieces).written == written


def test_what_comes_late_is_not_seen_any_more() -> None:
    words = stream((0, "All is"))
    words.end("turn_1")
    words.take(token(6, " well."))
    assert words.written == ""


def test_words_of_another_turn_begin_anew() -> None:
    words = stream((0, "One"))
    words.take(token(0, "Two", "turn_2"))
    words.end("turn_1")
    assert words.written == "Parley: Two"


def test_answers_that_nobody_waits_for_are_printed_after_all_that_are_awaited() -> None:
    """RT-15: a task that waited continues in a separate turn."""
    written: list[str] = []
    words = StreamedWords(written.append, lambda: None)
    words.begin()
    words.begin()
    words.answered("turn_0", "Your report is ready.")
    words.answered("turn_1", "Hello.")
    words.end("turn_1")
    words.finish()
    assert written == []
    words.finish()
    words.answered("turn_1", "Hello.")
    words.answered("turn_2", "It was approved.")

    assert written == ["Parley: Your report is ready.", "Parley: It was approved."]


# Answers to type-ahead.


class Gateway:
    """A gateway whose turns end on command."""

    base_url = "http://here.test"

    def __init__(self) -> None:
        self.turns: dict[str, dict[str, Any]] = {}
        self.ended = threading.Condition()

    def turn(self, turn_id: str, wait_s: float | None = None) -> dict[str, Any]:
        with self.ended:
            if wait_s is not None:
                self.ended.wait_for(lambda: self.turns[turn_id]["status"] == "done", wait_s)
            return dict(self.turns[turn_id])

    def accept(self, turn_id: str, seq: int) -> dict[str, Any]:
        self.turns[turn_id] = make_turn(turn_id=turn_id, seq=seq, status="queued", epoch=None)
        return self.turns[turn_id]

    def end(self, **epochs: int) -> None:
        with self.ended:
            for turn_id, epoch in epochs.items():
                self.turns[turn_id] |= {"status": "done", "epoch": epoch, "reply": f"Of {turn_id}."}
            self.ended.notify_all()


def test_answers_are_shown_in_the_order_in_which_they_are_given() -> None:
    """A question's answer, given during the running turn, comes before that turn's answer. Each appears once."""
    gateway, out = Gateway(), io.StringIO()
    conversation = Conversation(gateway, "session_1")  # type: ignore[arg-type]
    talk = Talk(conversation, Console(file=out, width=100))
    words = StreamedWords(lambda _text: None, lambda: None)
    answers = Answers(talk, words)
    for seq, turn_id in enumerate(["work", "question", "thanks"], start=1):
        words.begin()
        answers.expect(conversation, gateway.accept(turn_id, seq))
    assert answers.status == "answering… · no open task"
    with answers.shown:  # no answer can be printed before all three have ended
        gateway.end(thanks=3, work=2, question=1)
    answers.wait()

    assert out.getvalue().splitlines() == ["Parley: Of question.", "Parley: Of work.", "Parley: Of thanks."]
    assert answers.status == "no open task"


def test_every_message_goes_by_the_sessions_rule_with_the_users_place() -> None:
    sent: list[dict[str, Any]] = []

    class Sessions:
        def create_session(self, *_: Any, **named: Any) -> dict[str, Any]:
            sent.append(named)
            return {"session_id": "session_1", "if_busy": "understand"}

        def submit(self, *_: Any, **named: Any) -> dict[str, Any]:
            sent.append(named)
            return {"status": "done"}

    place = Place("Europe/Berlin", "de-DE")
    conversation = Conversation.begin(Sessions(), domain=None, session_id=None, place=place)  # type: ignore[arg-type]
    conversation.say("no, to Ann")
    conversation.act("confirm", {})
    conversation.ask("thanks")

    assert {(named["timezone"], named["locale"]) for named in sent} == {("Europe/Berlin", "de-DE")}
    assert not any("if_busy" in named for named in sent)
