"""Generate messages that resemble a confirmation but don't confirm, from patterns and word lists.

As with phrases, a hash decides which words and pairs are held out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

import yaml

from lab.goals.grammar import PHRASES, Half, expand, half_of

_LIST = re.compile(r"<(\w+)>")


@dataclass(frozen=True)
class NearYes:
    """The near-confirmations of one half of the grammar. The blind half uses the held-out words."""

    half: Half

    @property
    def kinds(self) -> Sequence[str]:
        return list(_stock()["near"])

    @property
    def pairs(self) -> Sequence[tuple[str, str]]:
        """Pairs of a confirmation, and a message that differs in one word and doesn't confirm."""
        return [(plain, near) for plain, near in _stock()["pairs"] if self._holds(near)]

    def say(self, chance: Random, kind: str = "") -> str:
        pattern = chance.choice(_stock()["near"][kind or chance.choice(self.kinds)])
        return expand(_LIST.sub(lambda found: chance.choice(self._words(found[1])), pattern), chance)

    def pair(self, chance: Random) -> tuple[str, str]:
        return chance.choice(self.pairs)

    def _words(self, name: str) -> Sequence[str]:
        return [word for word in _stock()["words"][name] if self._holds(word)]

    def _holds(self, text: str) -> bool:
        own = Half.HELD_OUT if self.half is Half.BLIND else self.half
        return own is Half.BOTH or half_of(text) is own


@cache
def _stock() -> dict[str, Any]:
    return yaml.load((PHRASES / "near_yes.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader)
