"""`summarize_session`: a rolling summary of a session's turns, as a proposal to its lane (IF-12).

It works without a model: the sentences that carry most of what the conversation is about.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, ClassVar

from internal_flows.stages import InternalFlow, RunContext, before_all_response, skip
from orchestrator.types import Json, JsonObject

_WORD = re.compile(r"[^\W\d_]{4,}")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_FRAMES = {"user": "User: ", "agent": "Assistant: "}


class SummarizeSession(InternalFlow):
    """Configuration: `sentences` kept (12), `length` of the summary in characters (2000)."""

    name: ClassVar[str] = "summarize_session"
    trigger: ClassVar[str] = "summary_due"
    tools: ClassVar[tuple[str, ...]] = ("housekeeping", "proposals")

    async def before_all(self, run: RunContext) -> Any:
        """One look at the state: what is summarised and the epoch that it belongs to fit together."""
        if run.session_id is None:
            return skip("It needs a session.")
        found = await run.tools["housekeeping"].state(run.tenant_id, run.session_id)
        if found is None:
            return skip("Nothing has been said yet.")
        earlier = found.state.get("summary") or {"text": "", "through_turn": 0}
        lines = [line for line in found.state["messages"] if line["turn"] > earlier["through_turn"]]
        if not lines:
            return skip("Nothing has been said since the last summary.")
        through = max(line["turn"] for line in lines)
        given = {"earlier": earlier["text"], "lines": lines, "through_turn": through, "epoch": found.epoch}
        return before_all_response(inputs=[given])

    async def work(self, run: RunContext, item: JsonObject, data: JsonObject) -> str:
        kept = run.config.get("sentences", 12)
        return summarize(item["earlier"], item["lines"], kept, run.config.get("length", 2000))

    async def output(self, run: RunContext, item: JsonObject, data: Json, result: str) -> Json:
        turn_id = await run.tools["proposals"].propose(
            run.tenant_id,
            run.session_id,
            "summary",
            {"text": result, "through_turn": item["through_turn"]},
            epoch=item["epoch"],
            flow=self.name,
            run_id=run.run_id,
        )
        return {"turn_id": turn_id, "through_turn": item["through_turn"]}


def summarize(earlier: str, lines: list[JsonObject], kept: int, length: int) -> str:
    """The earlier summary and the most telling new sentences, in order; the oldest go when it is long.

    A sentence tells as much as its words occur in the conversation, for each of its words; the users' own
    count double.
    """
    sentences = [
        (line["role"], sentence.strip())
        for line in lines
        for sentence in _SENTENCE.split(line["text"])
        if _WORD.search(sentence)
    ]
    counts = Counter(word for _, sentence in sentences for word in _words(sentence))
    ranked = sorted(range(len(sentences)), key=lambda place: (-_weight(*sentences[place], counts), place))
    chosen = [sentences[place] for place in sorted(ranked[:kept])]
    new = [f"{_FRAMES.get(role, '')}{sentence}" for role, sentence in dict.fromkeys(chosen)]
    told = [*earlier.splitlines(), *new]
    while len(told) > 1 and sum(len(line) + 1 for line in told) > length:
        told.pop(0)
    return "\n".join(told)[:length]


def _words(sentence: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(sentence)]


def _weight(role: str, sentence: str, counts: Counter[str]) -> float:
    words = _words(sentence)
    return (2 if role == "user" else 1) * sum(counts[word] for word in set(words)) / max(4, len(words))
