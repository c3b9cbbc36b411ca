"""What is packed is given back to the byte, also what was packed long ago."""

from __future__ import annotations

import zlib

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.adapters.packing import Packed, pack, pack_json, unpack, unpack_json

OLD = bytes.fromhex(
    "018d96d10a823014407fe57e80c49ca9d397a0379ffb00991139c21625440f42ffd01ff625dd5da76e95d19b081b6ce3"
    "9e73bc28106314e0d787fc2bad0f18026a5f63bbd80ef0adfbd5b7ee326780b25444c6ad83acec4de2418e657b56276f"
    "d8424e70f9135b3b649e6e6e80ef202f14a54421310fb102bb534928d6719a2401b4bad158cdd7004291c7ec797f709e"
    "476c019b1ac7170a306702d5ae9cbd67e1875769b9625451f622eddbc56b0a532124a2d1bb3dbf65651a6e32b03d9d3b"
    "d603b57dadb05072966622db2e0d992caf87e5e48149bb56b0f4c35b68d04c05346f4c7af631a2dee4e66d66b7faa9a8"
    "c428aaeb5e"
)
"""A diff as it was stored when the dictionary was made."""
OLD_VALUE = {
    "=": {"turn": 8, "epoch": 8, "predicted_flow": "book_flight"},
    "~": {
        "candidates": {
            "~": [[0, {"=": {"dact": "book_flight", "score": 0.9783}}]],
            "+": [{"dact": "plan_trip", "score": 0.012}],
        },
        "messages": {
            "+": [
                {"role": "user", "text": "economy please", "turn": 8},
                {
                    "role": "agent",
                    "text": "Iberia IB5766, tomorrow, 18:50–22:30. Shall I book it?",
                    "turn": 8,
                },
            ]
        },
        "trace": {"+": [{"turn": 8, "kind": "slot_value"}]},
        "stack": {
            "~": [
                [
                    1,
                    {
                        "~": {
                            "slots": {
                                "=": {
                                    "cabin": {
                                        "value": "economy",
                                        "source": "user",
                                        "turn_id": "turn_01a207989c41",
                                        "text": "economy",
                                    }
                                }
                            },
                            "turn_ids": {"+": ["turn_01a207989c41"]},
                        }
                    },
                ]
            ]
        },
        "ambiguity": {
            "~": {
                "open": {"~": [[1, {"=": {"turn_id": "turn_01a207989c41"}}]]},
                "counts": {"=": {"confirmation": 6}},
            }
        },
    },
}

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=9), inner, max_size=5),
    max_leaves=20,
)


@given(values)
def test_what_is_packed_comes_back_to_the_byte(value: object) -> None:
    plain = orjson.dumps(value)
    assert unpack(pack(plain)) == plain
    assert unpack_json(pack_json(value)) == orjson.loads(plain)


def test_what_was_stored_once_can_be_read_for_ever() -> None:
    """Whoever changes the dictionary loses every state there is."""
    assert unpack_json(OLD) == OLD_VALUE


def test_what_a_turn_writes_becomes_less_than_half_and_what_is_short_stays_plain() -> None:
    """RT-20"""
    plain = orjson.dumps(OLD_VALUE)
    assert len(pack(plain)) * 2 < len(plain)
    assert pack(b"{}") == b"{}"


def test_what_is_damaged_is_no_json() -> None:
    with pytest.raises((zlib.error, orjson.JSONDecodeError)):
        unpack_json(OLD[:1] + b"\xff" + OLD[2:])


def test_a_column_has_the_value_and_null_where_there_is_none() -> None:
    column, dialect = Packed(), None
    assert column.process_result_value(column.process_bind_param({"a": 1}, dialect), dialect) == {"a": 1}
    assert column.process_bind_param(None, dialect) is None
    assert column.process_result_value(None, dialect) is None
