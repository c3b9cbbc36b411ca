"""What is packed is given back to the byte, also what was packed long ago."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from importlib import resources

import orjson
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.adapters.packing import Packed, pack, pack_json, unpack, unpack_json

DICTIONARY = resources.files("orchestrator.adapters") / "packing.zdict"
OLD = bytes.fromhex(
    "28b52ffd61019901dd050093c30b555555550557b002215496cad529670402109a5e638d0a4508964a848a30939415ca"
    "e48f2959ac1b8ba5aa9a8c520635fc9879f093ae8b40d38915893cc6a050a1c4f4234cf717c6b53924468dea5d7705a2"
    "5092b912d8376074e1d714bacb709fa8177e5f55e945b9fb72b8f277a3a3688c07b8f2a522dc9b79ea0ce801a19ae4f6"
    "845a0db8601583e07d5d2b975248757bf6f4e8a6baae300f2e98e4c9c88b8b03c7c2740f94f193509173e04926d66650"
    "540795cb6006"
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


def test_threads_pack_side_by_side() -> None:
    """Each with its own means: two at once would disturb each other."""
    plains = [orjson.dumps([number, OLD_VALUE]) for number in range(400)]
    with ThreadPoolExecutor(8) as pool:
        assert [*pool.map(lambda one: unpack(pack(one)), plains)] == plains


def test_what_another_dictionary_packed_is_refused() -> None:
    """A later dictionary has another number, so that nothing is read as what it is not."""
    other = zstandard.ZstdCompressionDict(DICTIONARY.read_bytes().replace(b"turn_", b"tern_"))
    renumbered = bytearray(other.as_bytes())
    renumbered[4:8] = (2).to_bytes(4, "little")
    other = zstandard.ZstdCompressionDict(bytes(renumbered))
    with pytest.raises(zstandard.ZstdError):
        unpack(zstandard.ZstdCompressor(dict_data=other).compress(orjson.dumps(OLD_VALUE)))


def test_what_is_damaged_is_no_json() -> None:
    with pytest.raises((zstandard.ZstdError, orjson.JSONDecodeError)):
        unpack_json(OLD[:9] + b"\xff" + OLD[10:])


def test_a_column_has_the_value_and_null_where_there_is_none() -> None:
    column, dialect = Packed(), None
    assert column.process_result_value(column.process_bind_param({"a": 1}, dialect), dialect) == {"a": 1}
    assert column.process_bind_param(None, dialect) is None
    assert column.process_result_value(None, dialect) is None
