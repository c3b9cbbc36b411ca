"""`tidy_scratchpad`: clean up a session's scratchpad after its valuable entries were promoted."""

from typing import Any, ClassVar

from internal_flows.session.promotion import PROMOTED, TIMES, data_of, with_data
from internal_flows.stages import InternalFlow, RunContext, skip
from orchestrator.ports.memory.scratchpad import CAPACITY, Entry, EntryKind
from orchestrator.types import Json


class TidyScratchpad(InternalFlow):
    """A flow that cleans up a session's scratchpad.

    It merges duplicates, drops promoted entries and proposals, and keeps the 64 most recently used entries.
    """

    name: ClassVar[str] = "tidy_scratchpad"
    trigger: ClassVar[str] = "summary_due"
    depends_on: ClassVar[tuple[str, ...]] = ("distil_preferences", "promote_context")
    tools: ClassVar[tuple[str, ...]] = ("scratchpad",)

    async def before_all(self, run: RunContext) -> Any:
        return skip("This flow requires a session.") if run.session_id is None else None

    async def after_all(self, run: RunContext, outputs: list[Json]) -> Json:
        pad = run.tools["scratchpad"]
        entries = await pad.read(run.tenant_id, run.session_id, touch=False)
        merged, superfluous = tidy(entries)
        if merged:
            await pad.put(run.tenant_id, run.session_id, merged, operation=run.run_id)
        removed = await pad.remove(run.tenant_id, run.session_id, superfluous)
        return {"kept": len(entries) - removed, "removed": removed}


def tidy(entries: list[Entry]) -> tuple[tuple[Entry, ...], tuple[str, ...]]:
    """Return merged entries to rewrite, and IDs of entries to delete.

    `entries`: least recently used first. A merged entry has the labels of all its duplicates, so that private
    content stays private, and their total count.
    """
    newest: dict[tuple[Json, ...], Entry] = {}
    superfluous = [entry.entry_id for entry in entries if _is_done_with(entry)]
    merged: dict[str, Entry] = {}
    for entry in reversed([entry for entry in entries if not _is_done_with(entry)]):
        content = _content(entry)
        kept = newest.setdefault(content, entry)
        if kept is entry:
            continue
        superfluous.append(entry.entry_id)
        newest[content] = merged[kept.entry_id] = _merge(kept, entry)
    left = [entry for entry in entries if entry.entry_id not in superfluous]
    superfluous += [entry.entry_id for entry in left[: max(0, len(left) - CAPACITY)]]
    return tuple(entry for name, entry in merged.items() if name not in superfluous), tuple(superfluous)


def _is_done_with(entry: Entry) -> bool:
    return entry.kind is EntryKind.PROPOSAL or PROMOTED in data_of(entry)


def _content(entry: Entry) -> tuple[Json, ...]:
    data = {name: value for name, value in data_of(entry).items() if name != TIMES}
    content = repr(data or None) if isinstance(entry.data, dict) else repr(entry.data)
    return entry.kind, " ".join((entry.text or "").split()).casefold(), content


def _merge(kept: Entry, other: Entry) -> Entry:
    labels = tuple(sorted({*kept.labels, *other.labels}))
    joined = Entry.from_json({**kept.to_json(), "labels": labels})
    if kept.data is not None and not isinstance(kept.data, dict):
        return joined
    times = [int(data_of(entry).get(TIMES, 1)) for entry in (kept, other)]
    return with_data(joined, {TIMES: sum(times)})
