// The scratchpad, which flows and background flows use to exchange entries.

import { h } from "../dom.js";
import { humanize, showTime } from "../words.js";
import { chip, fold, nothing } from "./common.js";

export const id = "notes";
export const label = "Scratchpad";

export function load({ session }) {
  return session.api.scratchpad(session.id);
}

export function render({ data }) {
  const entries = Array.isArray(data) ? data : (data?.entries ?? []);
  if (entries.length === 0) return nothing("The scratchpad is empty. Flows and background flows store entries here.");
  return h("ul", { class: "entries", "aria-label": "Scratchpad" }, [...entries].reverse().map((entry) => h("li", { class: "entry" },
    h("header", {}, h("h4", {}, humanize(entry.flow)), chip(entry.kind, "open"), h("span", { class: "when" }, showTime(entry.at))),
    entry.text ? h("p", {}, entry.text) : null,
    h("p", { class: "quote" }, [entry.origin ? `from ${entry.origin}` : null, entry.epoch ? `version ${entry.epoch}` : null, entry.labels?.length ? `labels: ${entry.labels.join(", ")}` : null].filter(Boolean).join(", ")),
    entry.data === null || entry.data === undefined ? null : fold("Data", entry.data, `note:${entry.entry_id}`))));
}
