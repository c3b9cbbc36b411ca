"""`summarize_session`: propose a rolling summary of a session to its session lane (IF-12).

A model writes the summary and lists findings worth keeping. Without a model, the summary consists of the most
representative sentences.
"""

import re
from collections import Counter
from dataclasses import asdict
from typing import Any, ClassVar

from internal_flows.session.promotion import SALIENT, About, is_lasting
from internal_flows.stages import InternalFlow, Options, RunContext, before_all_response, skip
from orchestrator.errors import BudgetExceeded, ModelOutputInvalid, ModelUnavailable
from orchestrator.memory.tokenizer import split_sentences
from orchestrator.models.schemas import array, bounded_text, closed, list_of, loose, one_of
from orchestrator.ports.material import CONVERSATION, Conversation
from orchestrator.ports.memory.scratchpad import Entry, EntryKind
from orchestrator.types import Epoch, Json, JsonObject

PROMPT = "memory_summarize"
SUMMARY_NOTE = "summary"
"""ID of the scratchpad entry with the session's latest summary."""
MOST_FINDINGS = 5
LONGEST_FINDING = 300
STATED = SALIENT
"""Salience of users' statements about themselves, if no model rates them."""

_TEXT: JsonObject = {"type": "string", "minLength": 1}
_FINDING = loose(
    ["text", "about"],
    text=_TEXT,
    about={"enum": [about.value for about in About]},
    salience={"type": "number", "minimum": 0, "maximum": 1},
    explicit={"type": "boolean"},
)
JUDGED_BY = loose(["summary"], summary=_TEXT, findings=array(_FINDING))


def summary_schema(longest: int) -> JsonObject:
    """Return the JSON schema of a summary with findings. `longest`: maximum summary length, in characters."""
    finding = closed(
        text=bounded_text(LONGEST_FINDING),
        about=one_of(about.value for about in About),
        salience={"type": "number"},
        explicit={"type": "boolean"},
    )
    return closed(summary=bounded_text(longest), findings=list_of(finding, MOST_FINDINGS))


class SummarizeSession(InternalFlow):
    """A flow that summarizes a session.

    Configuration: `use_model` (true); `max_words`, the maximum length of a model's summary (250);
    `sentences`, the number of new sentences to keep without a model (12); `length`, the maximum length of a
    summary in characters (2000).
    """

    name: ClassVar[str] = "summarize_session"
    trigger: ClassVar[str] = "summary_due"
    material: ClassVar[tuple[str, ...]] = (CONVERSATION,)
    tools: ClassVar[tuple[str, ...]] = ("proposals", "scratchpad", "writer")
    options: ClassVar[Options] = Options(timeout_s=120)

    async def before_all(self, run: RunContext) -> Any:
        found: Conversation | None = run.material[CONVERSATION]
        if found is None:
            return skip("There are no messages yet.")
        if not found.lines:
            return skip("There are no messages since the last summary.")
        return before_all_response(inputs=[asdict(found)])

    async def work(self, run: RunContext, item: JsonObject, data: JsonObject) -> JsonObject:
        length = run.config.get("length", 2000)
        written, problem = await self._ask(run, item, length)
        if written is not None:
            findings = written.get("findings", [])[:MOST_FINDINGS]
            return {"text": written["summary"][:length], "by": "model", "findings": findings}
        text = summarize(item["earlier"], item["lines"], run.config.get("sentences", 12), length)
        findings = find_statements(item["lines"])[:MOST_FINDINGS]
        return {"text": text, "by": "extract", "findings": findings, "problem": problem}

    async def _ask(
        self, run: RunContext, item: JsonObject, length: int
    ) -> tuple[JsonObject | None, str | None]:
        """Return the model's answer and None, or None and the error code.

        Both are None if the flow doesn't use a model.
        """
        if not run.config.get("use_model", True):
            return None, None
        variables: JsonObject = {
            "max_words": run.config.get("max_words", 250),
            "max_findings": MOST_FINDINGS,
            "summary": item["earlier"],
            "turns": [{"role": line["role"], "text": line["text"]} for line in item["lines"]],
        }
        assert run.session_id is not None
        try:
            written = await run.tools["writer"].write(
                PROMPT,
                variables,
                summary_schema(length),
                judged_by=JUDGED_BY,
                domain=item["domain"],
                tenant_id=run.tenant_id,
                user_id=item["user_id"],
                session_id=run.session_id,
                run_id=run.run_id,
                model=run.options.model,
            )
        except (ModelUnavailable, ModelOutputInvalid, BudgetExceeded) as error:
            return None, error.code
        return written, None

    async def output(self, run: RunContext, item: JsonObject, data: Json, result: JsonObject) -> Json:
        assert run.session_id is not None
        await run.tools["proposals"].propose(
            run.tenant_id,
            run.session_id,
            "summary",
            {"text": result["text"], "through_turn": item["through_turn"], "labels": item["labels"]},
            epoch=item["epoch"],
            flow=self.name,
            run_id=run.run_id,
        )
        notes = make_notes(item, result, run.now, run.run_id)
        await run.tools["scratchpad"].put(
            run.tenant_id, run.session_id, notes, operation=f"{run.run_id}:notes"
        )
        further = {name: result[name] for name in ("by", "problem") if result.get(name)}
        return {"through_turn": item["through_turn"], **further}


def make_notes(item: JsonObject, result: JsonObject, at: float, run_id: str) -> tuple[Entry, ...]:
    more: JsonObject = {
        "flow": SummarizeSession.name,
        "origin": f"turns up to {item['through_turn']}",
        "at": at,
        "epoch": Epoch(item["epoch"]),
        "labels": tuple(item["labels"]),
    }
    summary = Entry(
        kind=EntryKind.SUMMARY,
        text=result["text"],
        data={"through_turn": item["through_turn"], "by": result["by"]},
        entry_id=SUMMARY_NOTE,
        **more,
    )
    findings = [
        Entry(
            kind=EntryKind.FINDING,
            text=" ".join(finding["text"].split())[:LONGEST_FINDING],
            data={name: finding[name] for name in ("about", "salience", "explicit") if name in finding},
            entry_id=f"finding_{run_id}_{place}",
            **more,
        )
        for place, finding in enumerate(result["findings"])
    ]
    return (summary, *findings)


_WORD = re.compile(r"[^\W\d_]{4,}")
_FRAMES = {"user": "User: ", "agent": "Assistant: "}


def summarize(earlier: str, lines: list[JsonObject], kept: int, length: int) -> str:
    """Return the earlier summary and the `kept` most relevant new sentences, in order, as lines.

    If the result is longer than `length` characters, the oldest sentences are dropped first, and users'
    statements about themselves last. A sentence's score is the mean frequency of its words in the
    conversation. The user's sentences have double weight.
    """
    sentences = _split(lines)
    counts = Counter(word for _, sentence in sentences for word in _words(sentence))
    ranked = sorted(
        range(len(sentences)),
        key=lambda place: (not _is_statement(*sentences[place]), -_weight(*sentences[place], counts), place),
    )
    chosen = [sentences[place] for place in sorted(ranked[:kept])]
    new = [f"{_FRAMES.get(role, '')}{sentence}" for role, sentence in dict.fromkeys(chosen)]
    kept_lines = list(dict.fromkeys((*earlier.splitlines(), *new)))
    while len(kept_lines) > 1 and sum(len(line) + 1 for line in kept_lines) > length:
        passing = (place for place, line in enumerate(kept_lines) if not is_lasting(line))
        kept_lines.pop(next(passing, 0))
    return "\n".join(kept_lines)[:length]


def find_statements(lines: list[JsonObject]) -> list[JsonObject]:
    """Return users' lasting statements about themselves, as findings."""
    told = [sentence for role, sentence in _split(lines) if _is_statement(role, sentence)]
    return [
        {"text": sentence, "about": About.USER.value, "salience": STATED} for sentence in dict.fromkeys(told)
    ]


def _split(lines: list[JsonObject]) -> list[tuple[str, str]]:
    return [
        (line["role"], sentence)
        for line in lines
        for sentence in split_sentences(line["text"])
        if _WORD.search(sentence)
    ]


def _is_statement(role: str, sentence: str) -> bool:
    return role == "user" and is_lasting(sentence)


def _words(sentence: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(sentence)]


def _weight(role: str, sentence: str, counts: Counter[str]) -> float:
    words = _words(sentence)
    return (2 if role == "user" else 1) * sum(counts[word] for word in set(words)) / max(4, len(words))
