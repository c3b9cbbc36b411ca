"""Fork a session in a `MemoryStore`, by the rules of `sql/branch.sql` (ST-4)."""

from collections.abc import Callable
from dataclasses import replace

import orjson

from orchestrator.dialogue.storage.branching import branch_state
from orchestrator.dialogue.storage.serialization import diff
from orchestrator.turns.turn import SessionRecord, require_branch
from orchestrator.types import Epoch, JsonObject, SessionId, TenantId, TurnId, new_id
from parley.testing.store import KeptPlan, MemorySession, MemoryStore, Revision, record_of


def branch_session(
    store: MemoryStore,
    tenant_id: TenantId,
    session_id: SessionId,
    *,
    epoch: Epoch | None = None,
    branch_id: SessionId | None = None,
) -> MemorySession:
    """Fork a session at an epoch and return the fork. See `ports.sessions.Sessions.branch`."""
    parent, identifier = store.session(tenant_id, session_id), branch_id or SessionId(new_id("session"))
    since = parent.epoch if epoch is None else epoch
    state = parent.state_at(since)
    made = branch_state(state, identifier)
    is_new = identifier not in store.sessions
    branch = store.open_session(
        tenant_id, parent.domain, session_id=identifier, user_id=parent.user_id, if_busy=parent.if_busy
    )
    if not is_new:
        require_branch(record_of(SessionRecord, branch, state=None), session_id, epoch)
        return branch

    def by_then(turn_id: TurnId) -> bool:
        ended = store.turn(tenant_id, turn_id)[1].epoch
        return ended is not None and ended <= since

    branch.parent, branch.parent_epoch, branch.root = session_id, since, parent.root or session_id
    branch.epoch, branch.state = Epoch(since + 1), orjson.dumps(made)
    branch.revisions = {at: kept for at, kept in parent.revisions.items() if at <= since}
    branch.revisions[branch.epoch] = Revision(diff(state, made), made)
    branch.utterances = [dict(line) for line in parent.utterances if by_then(line["turn_id"])]
    branch.next_seq = 1 + max((line["seq"] for line in branch.utterances), default=0)
    branch.framed = {flow: turn_id for flow, turn_id in parent.framed.items() if by_then(turn_id)}
    branch.frames = {flow: parent.frames[flow] for flow in branch.framed}
    plans = {name: _cut(plan, by_then, made) for name, plan in parent.plans.items()}
    branch.plans = {name: plan for name, plan in plans.items() if plan is not None}
    known = {note.get("fingerprint") for note in made.get("effects", ())}
    for (owner, name), entry in list(store.effects.items()):
        if owner == session_id and (name in known or by_then(entry.turn_id)):
            of_session = entry.of_session or session_id
            store.effects[identifier, name] = replace(entry, session_id=identifier, of_session=of_session)
    return branch


def _cut(plan: KeptPlan, by_then: Callable[[TurnId], bool], state: JsonObject) -> KeptPlan | None:
    """Return the plan as of its last revision from a turn that satisfies `by_then`, or None if there is none."""
    revisions = [one for one in plan.revisions if by_then(one[1])]
    if not revisions:
        return None
    last, turn_id, at = revisions[-1]
    stacked = next((one for one in state["stack"] if one["flow_id"] == plan.record.plan_id), None)
    facts = {name: stacked.get(name) for name in ("state", "reason", "revision")} if stacked else {}
    return KeptPlan(replace(plan.record, body=last.body, **facts), turn_id, at, revisions)
