// A turn's messages, cost, calls, side effects and approvals.

import { showPairs } from "../blocks.js";
import { h } from "../dom.js";
import { humanize, showCost, showDuration, showNumber, showTime } from "../words.js";
import { chip, fold, linkOf, nothing, section } from "./common.js";

export function showFacts({ turn, signals, started_at: started }) {
  const calls = signals.filter((signal) => signal.type === "model_call").map((signal) => signal.payload);
  const sum = (name) => calls.reduce((total, call) => total + (call[name] ?? 0), 0);
  const about = [
    showTime(started), showDuration(turn.duration_ms),
    calls.length ? `${calls.length} model calls, ${showNumber(sum("tokens"))} tokens` : "No model calls",
    sum("cost_micros") ? showCost(sum("cost_micros")) : null,
  ];
  const refused = [...new Set(calls.map((call) => call.refused_by).filter(Boolean))];
  return section("Message and reply", h("div", { class: "entry" },
    h("header", {}, h("h4", {}, turn.text ?? humanize(turn.action?.name ?? "(the system)")), chip(turn.status)),
    h("p", {}, turn.reply ?? "No reply."),
    h("p", { class: "when" }, about.filter(Boolean).join(" · ")),
    refused.map((scope) => h("p", { class: "error" }, `The model budget was used up: ${humanize(scope)}`)),
    h("p", {}, h("a", { href: linkOf(turn) }, "Link to this turn"))));
}

/** Show a turn's calls, side effects and approvals. */
export function showCalls({ turn, signals, effects, approvals }) {
  const confirmed = signals.some((signal) => signal.type === "prediction" && signal.payload.kind === "confirmation");
  const entries = [
    ...turn.tools.map((call, at) => h("li", { class: "entry" },
      h("header", {}, h("h4", {}, humanize(call.tool_id)), chip(call.status)),
      fold("Arguments", call.arguments, `call:${turn.turn_id}:${at}`))),
    ...effects.map((effect) => h("li", { class: "entry" },
      h("header", {}, h("h4", {}, `Side effect: ${humanize(effect.tool_id)}`), chip(effect.status)),
      confirmed ? h("p", { class: "quote" }, "The user confirmed the call in this turn.") : null,
      fold("Result", effect.result, `effect:${effect.fingerprint}`))),
    ...approvals.map((one) => h("li", { class: "entry" },
      h("header", {}, h("h4", {}, `Approval: ${humanize(one.tool_id)}`), chip(one.status)),
      showPairs({ asked: one.cause, "decided by": one.decided_by, reason: one.reason }),
      fold("Arguments", one.arguments, `approval:${one.approval_id}`))),
  ];
  return section("Calls and confirmations", entries.length ? h("ul", { class: "entries" }, entries) : nothing("No tool was called."));
}
