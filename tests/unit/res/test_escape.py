"""Values from users, tools and models never become markup or template code (RS-7)."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from orchestrator.res.templates import ACTIVE, INVISIBLE, escape_value
from tests.cases import for_each


@for_each("plain", ["Oslo (OSL)", "BK-123", "O'Hare", "snake_case", "-5", "35 €", "a.b@c.de", "9:40"])
def test_ordinary_values_read_as_they_are(plain: str) -> None:
    assert str(escape_value(plain)) == plain


@for_each(
    ("active", "harmless"),
    [
        ("[click](http://x)", r"\[click\](http://x)"),
        ("<script>", r"\<script\>"),
        ("**bold**", r"\*\*bold\*\*"),
        ("`code`", r"\`code\`"),
        ("# title", r"\# title"),
        ("- item", r"\- item"),
        ("two\nlines", "two lines"),
        ("a\u202eb\u200bc\x07", "abc"),
    ],
)
def test_markup_is_disarmed(active: str, harmless: str) -> None:
    assert str(escape_value(active)) == harmless


def test_what_is_markup_already_stays() -> None:
    assert escape_value(Markup("*yes*")) == Markup("*yes*")


def test_nothing_shows_as_nothing() -> None:
    assert str(escape_value(None)) == ""


@given(st.text(alphabet=st.sampled_from("ab*_`[]<>\\#- 1.\n\u202e|~")))
def test_every_bracket_star_and_tick_has_its_backslash(text: str) -> None:
    escaped = str(escape_value(text))

    unescaped = re.sub(r"\\.", "", escaped)
    assert not set(unescaped) & set("*`[]<>\n\u202e")


@given(st.text(alphabet=st.sampled_from("aé1_ -.,:;/'()+#~|\n*\u200b")))
def test_a_value_is_left_alone_only_where_nothing_in_it_is_active(text: str) -> None:
    is_plain = ACTIVE.search(text) is None and INVISIBLE.search(text) is None

    assert (escape_value(text) == text) == is_plain
