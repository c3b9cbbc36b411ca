// The preferences of the session's user, with their sources.

import { h } from "../dom.js";
import { humanize, showTime, showValue } from "../words.js";
import { chip, fold, nothing } from "./common.js";

export const id = "memory";
export const label = "Memory";

export function load({ session }) {
  return session.api.preferences(session.record);
}

export function render({ data, session }) {
  const whose = session.record.user_id ? `For ${session.record.user_id}, in all sessions.` : "For this session only, because the user is unknown.";
  const { preferences } = data;
  if (preferences.length === 0) return nothing(`No preferences yet. ${whose}`);
  return [
    h("p", { class: "quote" }, whose),
    h("ul", { class: "entries", "aria-label": "Preferences" }, preferences.map((one) => h("li", { class: "entry" },
      h("header", {}, h("h4", {}, humanize(one.key.replace(/^\*\./, ""))), chip(one.source, "open"), h("span", { class: "when" }, showTime(one.updated_at))),
      one.value === null ? null : h("p", {}, showValue(one.value)),
      one.text ? h("p", { class: "quote" }, `“${one.text}”`) : null,
      h("p", { class: "quote" }, [humanize(one.kind), ...one.labels].join(" · ")),
      Object.keys(one.origin).length ? fold("Origin", one.origin, `preference:${one.key}`) : null))),
  ];
}
