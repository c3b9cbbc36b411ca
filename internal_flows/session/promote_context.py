"""`promote_context`: store a session's valuable findings as business context (CO-4)."""

from typing import Any, ClassVar

from internal_flows.session.promotion import (
    PROMOTED,
    About,
    Bars,
    Cause,
    describe_origin,
    find_cause,
    select,
    with_data,
)
from internal_flows.stages import InternalFlow, RunContext, before_all_response, skip
from orchestrator.memory.tokenizer import share_of
from orchestrator.ports.material import CONVERSATION, Conversation
from orchestrator.ports.memory.documents import NewDocument, Owned
from orchestrator.ports.memory.scratchpad import Entry
from orchestrator.types import Json, JsonObject

LONGEST_TITLE = 80


class PromoteContext(InternalFlow):
    """A flow that turns a session's valuable findings into embedded documents.

    Findings must be explicitly requested, frequent, or both salient and surprising. The documents belong to
    the user. If `share` is set, findings without labels become shared documents. In a session without a user,
    findings that can't be shared are skipped. Configuration: `share` (false), and the thresholds of
    `promotion.Bars`.
    """

    name: ClassVar[str] = "promote_context"
    trigger: ClassVar[str] = "summary_due"
    depends_on: ClassVar[tuple[str, ...]] = ("summarize_session",)
    material: ClassVar[tuple[str, ...]] = (CONVERSATION,)
    tools: ClassVar[tuple[str, ...]] = ("scratchpad", "context")

    async def before_all(self, run: RunContext) -> Any:
        found: Conversation | None = run.material[CONVERSATION]
        if found is None:
            return skip("There are no messages yet.")
        if found.user_id is None and not run.config.get("share"):
            return skip("The session has no user, and `share` is off.")
        entries = await run.tools["scratchpad"].read(run.tenant_id, run.session_id, touch=False)
        inputs = [entry.to_json() for entry in select(entries, About.BUSINESS)]
        data: JsonObject = {"user_id": found.user_id, "domain": found.domain}
        return before_all_response(inputs=inputs, data=data)

    async def data(self, run: RunContext, item: JsonObject) -> Any:
        """Return an entry's owner and why the entry is worth keeping, or skip the entry."""
        entry = Entry.from_json(item)
        owner = run.data["user_id"]
        shared = bool(run.config.get("share")) and not entry.labels
        if owner is None and not shared:
            return skip("Labeled entries are not shared, and the session has no user.")
        owned = Owned(run.tenant_id, owner, run.data["domain"])
        passages = await run.tools["context"].search(owned, entry.text or "", limit=1)
        known = share_of(entry.text or "", passages[0].text, empty=1.0) if passages else 0.0
        cause = find_cause(entry, known, Bars.of(run.config))
        if cause is None:
            return skip("The entry is not explicit, frequent, or both salient and surprising.")
        return {"cause": cause.value, "user_id": None if shared else owner}

    async def work(self, run: RunContext, item: JsonObject, data: JsonObject) -> Json:
        entry, context = Entry.from_json(item), run.tools["context"]
        text = entry.text or ""
        added = await context.documents.add(
            NewDocument(
                tenant_id=run.tenant_id,
                text=text,
                title=text.splitlines()[0][:LONGEST_TITLE],
                domain=run.data["domain"],
                user_id=data["user_id"],
                labels=entry.labels,
                origin=describe_origin(entry, run.run_id, str(run.session_id), Cause(data["cause"])),
            )
        )
        await context.embed(run.tenant_id, added.document_id)
        return added.document_id

    async def output(self, run: RunContext, item: JsonObject, data: JsonObject, result: str) -> Json:
        entry = with_data(Entry.from_json(item), {PROMOTED: result})
        operation = f"{run.run_id}:{entry.entry_id}"
        await run.tools["scratchpad"].put(run.tenant_id, run.session_id, (entry,), operation=operation)
        return {"document_id": result, "because": data["cause"]}

    async def after_all(self, run: RunContext, outputs: list[Json]) -> Json:
        return {"promoted": sum(output is not None for output in outputs)}
