"""Hypothesis strategies for JSON documents and small edits of them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.floats(allow_nan=False)
    | st.text("ab\u202e", max_size=2)
)
keys = st.text("ab=~-+<|@", max_size=1)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)
objects = st.dictionaries(keys, values, max_size=4)


@st.composite
def edited(draw: st.DrawFn, value: Any) -> Any:
    """Return the value with a few small changes at random places."""
    if isinstance(value, dict) and value and draw(st.booleans()):
        key = draw(st.sampled_from(sorted(value)))
        return value | {key: draw(edited(value[key]))}
    if isinstance(value, list) and value and draw(st.booleans()):
        place = draw(st.integers(0, len(value) - 1))
        middle = draw(st.sampled_from(("replace", "remove", "insert", "tail", "slide")))
        if middle == "slide":
            return [*value[place:-1], draw(edited(value[-1])), draw(scalars)]
        if middle == "tail":
            return [*value, draw(scalars)]
        new = {"replace": [draw(edited(value[place]))], "remove": [], "insert": [draw(values), value[place]]}
        return [*value[:place], *new[middle], *value[place + 1 :]]
    return draw(values)
