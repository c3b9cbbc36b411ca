"""Which graphs are a sequence or have fan-ins, and in which waves (IF-9)."""

from __future__ import annotations

import pytest

from orchestrator.ports.runs.status import find_waves


@pytest.mark.parametrize(
    ("predecessors", "waves"),
    [
        ({"a": ""}, []),
        ({"a": "", "b": "a", "c": "b"}, ["a", "b", "c"]),
        ({"a": "", "b": "", "c": "ab"}, ["ab", "c"]),
        ({"a": "", "b": "a", "c": "a", "d": "bc"}, ["a", "bc", "d"]),
        ({"a": "", "b": "", "c": "ab", "d": "c", "e": "c", "f": "de"}, ["ab", "c", "de", "f"]),
        ({"a": "", "b": "a", "c": "a"}, []),
        ({"a": "", "b": ""}, []),
        ({"a": "", "b": "", "c": "ab", "d": "ab", "e": "cd"}, []),
        ({"a": "", "b": "", "c": "a", "d": "ab"}, []),
        ({"a": "", "b": "a", "c": "ab"}, []),
    ],
)
def test_the_waves_of_a_graph(predecessors: dict[str, str], waves: list[str]) -> None:
    found = find_waves({name: tuple(needed) for name, needed in predecessors.items()})

    assert ["".join(wave) for wave in found] == waves
