// The ledger of side effects, and the journal of calls.

import { showPairs } from "../blocks.js";
import { h } from "../dom.js";
import { humanize, showDuration, showTime } from "../words.js";
import { chip, fold, nothing, section } from "./common.js";

export const id = "journal";
export const label = "Journal";

export async function load({ session }) {
  const [effects, journal] = await Promise.all([session.api.effects(session.id), session.api.journal(session.id)]);
  return { effects, journal: Array.isArray(journal) ? journal : (journal.steps ?? []) };
}

export function render({ data, session }) {
  return [
    section("Side effects", data.effects.length ? h("ol", { class: "entries" }, [...data.effects].reverse().map((one) => showEffect(one))) : nothing("No side effects.")),
    section("Calls", data.journal.length ? h("ol", { class: "entries" }, data.journal.map((step) => showStep(step, session))) : nothing("No tool or model calls yet.")),
  ];
}

function showEffect(effect) {
  const key = effect.idempotency_key ?? effect.fingerprint;
  return h("li", { class: "entry" },
    h("header", {}, h("h4", {}, humanize(effect.tool_id)), chip(effect.status), h("span", { class: "when" }, showTime(effect.at))),
    Object.keys(effect.slots ?? {}).length ? h("div", {}, showPairs(effect.slots)) : null,
    fold("Arguments", effect.arguments, `effect:${key}:arguments`),
    effect.result === null ? null : fold("Result", effect.result, `effect:${key}:result`),
    h("p", { class: "quote" }, `Idempotency key ${effect.idempotency_key}`));
}

function showStep(step, session) {
  const seq = session.find(step.turn_id)?.turn?.seq;
  const { key } = step;
  return h("li", { class: "entry" },
    h("header", {}, h("h4", {}, key), chip(step.status), h("span", { class: "when" }, [seq ? `#${seq}` : null, showTime(step.at), step.duration_ms === null ? null : `for ${showDuration(step.duration_ms)}`].filter(Boolean).join(" "))),
    h("p", { class: "quote" }, humanize(step.kind)));
}
