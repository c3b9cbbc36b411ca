// The session's live event log, newest event last.

import { h } from "../dom.js";
import { humanize, showTime } from "../words.js";
import { nothing } from "./common.js";

export const id = "events";
export const label = "Events";

const MOST = 400;
const IDENTIFIER = /^[a-z]+_[0-9a-f]{16,}$/; // IDs, which are not useful to readers
const filter = { type: "" };

export function render({ session, view, redraw }) {
  const types = [...new Set(session.events.map((event) => event.type))].sort();
  const chosen = session.events.filter((event) => filter.type === "" || event.type === filter.type);
  const shown = chosen.slice(-MOST);
  const select = h("select", { id: "event-type", "data-key": "events:type", on: { change: (event) => {
    filter.type = event.target.value;
    redraw();
  } } }, h("option", { value: "" }, "All types"), types.map((type) => h("option", { value: type }, humanize(type))));
  select.value = types.includes(filter.type) ? filter.type : "";
  return [
    h("div", { class: "filter" }, h("label", { class: "unseen", for: "event-type" }, "Type of events"), select),
    chosen.length > MOST ? h("p", { class: "quote" }, `The newest ${MOST} of ${chosen.length}.`) : null,
    shown.length ? h("ol", { class: "log", "aria-label": "Event log" }, shown.map((event) => showEvent(event, session, view))) : nothing("No events yet."),
  ];
}

function showEvent(event, session, view) {
  const seq = session.find(event.turn_id)?.turn?.seq;
  const facts = Object.entries(event.payload ?? {}).filter(([name, value]) => value !== null && value !== "" && typeof value !== "object" && name !== "seq" && !IDENTIFIER.test(value));
  const about = facts.map(([name, value]) => `${name.replaceAll("_", " ")}: ${short(value)}`).join(", ");
  return h("li", { title: JSON.stringify(event.payload), "aria-current": event.number !== null && view.event?.number === event.number ? "step" : null, class: event.number === null ? "hint-event" : null },
    h("span", { class: "number" }, event.number ?? "live"),
    h("div", {}, h("span", { class: "type" }, humanize(event.type)), seq ? ` #${seq} ` : " ", h("span", { class: "about" }, about)),
    h("time", { class: "when", datetime: event.at }, showTime(event.at)));
}

function short(value) {
  const text = String(value);
  return text.length > 140 ? `${text.slice(0, 140)}…` : text;
}
