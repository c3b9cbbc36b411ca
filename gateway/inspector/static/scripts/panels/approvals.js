import { showPairs } from "../blocks.js";
import { button, h } from "../dom.js";
import { humanize, showTime } from "../words.js";
import { chip, fold, nothing, section } from "./common.js";

export const id = "approvals";
export const label = "Approvals";

export function load({ session }) {
  return session.api.approvals(session.id);
}

export const count = ({ data }) => (data ?? []).filter((one) => one.status === "pending").length;

export function render({ data, decide, session }) {
  const waiting = data.filter((one) => one.status === "pending");
  const decided = data.filter((one) => one.status !== "pending");
  return [
    section("Waiting", waiting.length ? h("ul", { class: "entries" }, waiting.map((one) => showWaiting(one, decide, slotsOf(session, one)))) : nothing("No pending approvals.")),
    decided.length ? section("Decided", h("ul", { class: "entries" }, decided.map(showDecided))) : null,
  ];
}

/** Return the slot values of the flow that waits for the approval. They help the user decide. */
function slotsOf(session, approval) {
  const flow = (session.record.state?.stack ?? []).find((one) => one.flow_id === approval.flow_id);
  return Object.fromEntries(Object.entries(flow?.slots ?? {}).map(([name, slot]) => [name, slot.value]));
}

function showWaiting(approval, decide, slots) {
  const reasonId = `reason-${approval.approval_id}`;
  const name = humanize(approval.tool_id);
  const reason = h("input", { id: reasonId, type: "text", maxlength: "1000", "data-key": reasonId, placeholder: "Reason (optional)" });
  return h("li", { class: "entry" },
    h("header", {}, h("h4", {}, name), chip(approval.status), h("span", { class: "when" }, showTime(approval.created_at))),
    h("p", {}, approval.question),
    approval.cause ? h("p", { class: "quote" }, `Because ${approval.cause}.`) : null,
    Object.keys(slots).length ? h("div", {}, showPairs(slots)) : null,
    fold("Arguments", approval.arguments, `approval:${approval.approval_id}`),
    h("div", { class: "line-buttons" },
      h("label", { class: "unseen", for: reasonId }, `Reason for the decision on ${name}`), reason,
      button("Grant", () => decide(approval, "grant", reason.value), { class: "primary", "aria-label": `Grant: ${name}`, "data-key": `grant:${approval.approval_id}` }),
      button("Deny", () => decide(approval, "deny", reason.value), { class: "danger", "aria-label": `Deny: ${name}`, "data-key": `deny:${approval.approval_id}` })),
    h("p", { class: "quote" }, `Expires ${showTime(approval.expires_at)}`));
}

function showDecided(approval) {
  return h("li", { class: "entry" },
    h("header", {}, h("h4", {}, humanize(approval.tool_id)), chip(approval.status), h("span", { class: "when" }, showTime(approval.decided_at ?? approval.closed_at))),
    h("p", {}, approval.question),
    h("p", { class: "quote" }, [approval.decided_by ? `by ${approval.decided_by}` : null, approval.reason].filter(Boolean).join(": ")));
}
