"""Repair stored states that violate an invariant.

Repair works on the JSON form, so that maintenance doesn't need the sessions' domains.
"""

from orchestrator.types import Json, JsonObject, copy_json


def repair(body: JsonObject) -> tuple[JsonObject, list[str]]:
    """Return the repaired state, and a sentence for each problem.

    A flow that is Active below the top becomes interrupted as of its start, so that repair is deterministic.
    An interrupted top flow becomes Active. Approvals and plan IDs that refer to flows outside the stack are
    removed.
    """
    mended: JsonObject = copy_json(body)
    stack: list[JsonObject] = mended["stack"]
    there: set[Json] = {flow["flow_id"] for flow in stack}
    wrong: list[str] = []
    for flow in stack[:-1]:
        if flow["state"] == "Active":
            flow.update(state="Pending", reason="interrupted", interrupted_at=flow["started_at"])
            wrong.append(f"{flow['dact']} was Active below the top of the stack.")
    if stack and stack[-1].get("reason") == "interrupted":
        top = stack[-1]
        top["state"] = "Active"
        for name in ("reason", "interrupted_at", "interruption"):
            top.pop(name, None)
        wrong.append(f"The top flow {top['dact']} was interrupted.")
    for flow in stack:
        if flow.get("plan_id") not in {None, *there}:
            del flow["plan_id"]
            wrong.append(f"{flow['dact']} belonged to a plan that no longer exists.")
    # an approval without a flow is a request for an operator and doesn't depend on tasks
    kept = [approval for approval in mended["approvals"] if approval["flow_id"] in {"", *there}]
    if len(kept) < len(mended["approvals"]):
        wrong.append(f"Approvals of flows that no longer exist: {len(mended['approvals']) - len(kept)}.")
        mended["approvals"] = kept
    return mended, wrong
