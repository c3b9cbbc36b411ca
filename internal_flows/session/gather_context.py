"""`gather_context`: search for information that a blocked dialogue flow needs (PX-16).

Each source is one item, so that sources are searched in parallel.
"""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, ClassVar, Final

from pydantic import TypeAdapter

from internal_flows.stages import (
    InternalFlow,
    OnFailure,
    Options,
    RunContext,
    Urgency,
    before_all_response,
    skip,
)
from orchestrator.errors import ParleyError
from orchestrator.ports.material import HISTORY, History
from orchestrator.ports.memory.context import GATHER_CONTEXT, ContextQuestion, Finding
from orchestrator.ports.memory.scratchpad import Entry, EntryKind
from orchestrator.types import Json, JsonObject, SessionId, is_object

MOST_FINDINGS = 8
LONGEST_TEXT = 500
NEWEST: Final = 200
"""Maximum number of rows to search per collection. Also determines how fast scores decrease with age."""
PRIVATE = "private"

_WORD = re.compile(r"\w{3,}")
_COMMON = frozenset(
    _WORD.findall("the and for you your are was with that this have has can could would which what who")
)

Search = Callable[[RunContext, ContextQuestion], Awaitable[list[Finding]]]
_QUESTION = TypeAdapter(ContextQuestion)
_UNASKED = {"user_id": None, **dict.fromkeys(("turn_id", "flow_id", "domain", "dact", "question"), "")}
"""Default values of a question's fields, for runs that no turn requested."""


class GatherContext(InternalFlow):
    """A flow that searches several sources for the slot values that a blocked dialogue flow needs.

    Configuration: `collections` maps the searchable collections of the domain's services to the capability
    labels of their content, for example ``{printers: []}``. Default: no collections.
    """

    name: ClassVar[str] = GATHER_CONTEXT
    trigger: ClassVar[str] = "context_needed"
    material: ClassVar[tuple[str, ...]] = (HISTORY,)
    tools: ClassVar[tuple[str, ...]] = ("sources", "memory", "scratchpad")
    options: ClassVar[Options] = Options(concurrency=5, timeout_s=5)
    on_failure: ClassVar[OnFailure] = OnFailure.RELEASE
    urgency: ClassVar[Urgency] = Urgency.URGENT

    async def before_all(self, run: RunContext) -> Any:
        history: History | None = run.material[HISTORY]
        if history is None:
            return skip("This flow requires a session.")
        question = _read_question(run)
        searched = (
            _search_tasks(history.tasks, question),
            _search_turns(history.turns, question),
            _from_rows(history.rows, question, (PRIVATE,)),
        )
        known: list[Json] = [finding.to_json() for found in searched for finding in best(found)]
        return before_all_response(inputs=list(_SOURCES), data=known)

    async def work(self, run: RunContext, item: str, data: Json) -> JsonObject:
        """Search one source. Report a failure in the result, so that other sources are still used."""
        question = _read_question(run)
        try:
            found = await _SOURCES[item](run, question)
        except ParleyError as error:
            return {"found": [], "failed": f"{error.code}: {error}"}
        return {"found": [finding.to_json() for finding in best(found)]}

    async def after_all(self, run: RunContext, outputs: list[Json]) -> Json:
        bodies = [*run.data, *(body for output in outputs for body in output["found"])]
        found = best([Finding.from_json(body) for body in bodies])
        failed = {
            name: output["failed"]
            for name, output in zip(_SOURCES, outputs, strict=True)
            if "failed" in output
        }
        noted = tuple(_note(run, place, finding) for place, finding in enumerate(found))
        if noted:
            await run.tools["scratchpad"].put(run.tenant_id, run.session_id, noted, operation=run.run_id)
        return {"found": [finding.to_json() for finding in found], "failed": failed}


def best(found: Iterable[Finding]) -> list[Finding]:
    """Return up to `MOST_FINDINGS` findings, best first, without duplicate texts.

    Findings with slot values rank above all others.
    """
    texts: dict[str, Finding] = {}
    for finding in sorted(found, key=lambda one: (not one.values, -one.score)):
        texts.setdefault(finding.text.casefold(), finding)
    return list(texts.values())[:MOST_FINDINGS]


def _read_question(run: RunContext) -> ContextQuestion:
    asked: JsonObject = {**_UNASKED, **run.parameters}
    return _QUESTION.validate_python(
        {**asked, "tenant_id": run.tenant_id, "session_id": run.session_id or SessionId("")}
    )


def _words_of(question: ContextQuestion) -> frozenset[str]:
    texts = [question.question, *question.slots, *question.slots.values()]
    texts += [value for value in question.known.values() if isinstance(value, str)]
    return find_words(" ".join(texts).replace("_", " "))


def find_words(text: str) -> frozenset[str]:
    return frozenset(word.casefold() for word in _WORD.findall(text)) - _COMMON


def _note(run: RunContext, place: int, finding: Finding) -> Entry:
    return Entry(
        run.flow,
        f"run {run.run_id}, {finding.source}",
        EntryKind.FINDING,
        run.now,
        text=finding.text,
        data=finding.values or None,
        labels=finding.labels,
        entry_id=f"{run.run_id}:{place}",
    )


# Sources


async def _search_notes(run: RunContext, question: ContextQuestion) -> list[Finding]:
    entries = await run.tools["scratchpad"].read(run.tenant_id, run.session_id, touch=False)
    noted = [entry for entry in entries if entry.text and entry.kind is not EntryKind.PROPOSAL]
    return [
        Finding("scratchpad", entry.text or "", _pick(entry.data, question), score, entry.labels)
        for entry in noted
        if (score := _fit(entry.text or "", question)) > 0 or _pick(entry.data, question)
    ]


def _search_tasks(tasks: list[JsonObject], question: ContextQuestion) -> list[Finding]:
    """Return the requested slots' values from earlier tasks. Newer tasks score higher."""
    found: list[Finding] = []
    for age, task in enumerate(tasks):
        values = _pick({**task["slots"], **task["outputs"]}, question)
        if values:
            known = ", ".join(f"{_plain(name)}: {value}" for name, value in values.items())
            found.append(Finding("tasks", f"{_plain(task['dact'])}: {known}", values, 3.0 - age / NEWEST))
    return found


def _search_turns(lines: list[str], question: ContextQuestion) -> list[Finding]:
    return [
        Finding("turns", f"The user said: {line[:LONGEST_TEXT]}", {}, score - age / NEWEST / 10)
        for age, line in enumerate(lines)
        if (score := _fit(line, question)) > 0
    ]


async def _search_collections(run: RunContext, question: ContextQuestion) -> list[Finding]:
    """Return the matching rows from the configured collections, except other users' rows."""
    found: list[Finding] = []
    collections: Mapping[str, Any] = run.config.get("collections", {})
    for name, labels in collections.items():
        rows = await run.tools["sources"].rows(run.tenant_id, question.domain, name, limit=NEWEST)
        own = [row for row in rows if row.get("user_id") in {None, question.user_id}]
        found += _from_rows(own, question, tuple(labels))
    return found


async def _search_memory(run: RunContext, question: ContextQuestion) -> list[Finding]:
    return await run.tools["memory"].search(run.tenant_id, question.user_id, question, limit=MOST_FINDINGS)


_SOURCES: Final[Mapping[str, Search]] = {
    "scratchpad": _search_notes,
    "rows": _search_collections,
    "memory": _search_memory,
}


def _from_rows(rows: list[JsonObject], question: ContextQuestion, labels: tuple[str, ...]) -> list[Finding]:
    """Return findings for the matching rows.

    Only the rows with the best score provide slot values, and only those values that all of them share.
    """
    fitting = [(row, score) for row in rows if (score := _fit(_describe(row), question)) > 0]
    fitting.sort(key=lambda pair: -pair[1])
    top = [row for row, score in fitting if score == fitting[0][1]]
    agreed = (
        {
            name: _pick(top[0], question)[name]
            for name in _pick(top[0], question)
            if all(row.get(name) == top[0][name] for row in top)
        }
        if top
        else {}
    )
    return [
        Finding("rows", _describe(row)[:LONGEST_TEXT], agreed if row in top else {}, score, labels)
        for row, score in fitting[:MOST_FINDINGS]
    ]


def _pick(body: Json, question: ContextQuestion) -> JsonObject:
    if not is_object(body):
        return {}
    return {name: body[name] for name in question.slots if body.get(name) is not None}


def _fit(text: str, question: ContextQuestion) -> float:
    """Return how many of the question's words occur in a text."""
    return float(len(_words_of(question) & find_words(text.replace("_", " "))))


def _describe(row: JsonObject) -> str:
    return ", ".join(
        f"{_plain(name)}: {value}" for name, value in row.items() if isinstance(value, str | int | float)
    )


def _plain(name: str) -> str:
    return name.replace("_", " ")
