import { h } from "../dom.js";
import { toneOf } from "../words.js";

export function nothing(text) {
  return h("p", { class: "nothing" }, text);
}

export function chip(text, status = text) {
  return h("span", { class: `chip ${toneOf(status)}` }, String(text).replaceAll("_", " "));
}

/** Return collapsed JSON. With a `key`, the JSON stays open when the panel is redrawn. */
export function fold(label, value, key) {
  return h("details", { "data-key": key }, h("summary", {}, label), h("pre", { class: "json", tabindex: "0", role: "region", "aria-label": label }, JSON.stringify(value, null, 2)));
}

export function section(title, ...children) {
  return h("section", { "aria-label": title }, h("h3", {}, title), children);
}

/** Return the URL hash that shows a turn in its panel. */
export function linkOf({ session_id: session, turn_id: turn }) {
  return `#${new URLSearchParams({ session, panel: "turn", turn })}`;
}

/** Return the displayed state: the current state, the state at an epoch, or a replay's state. Default: null. */
export function stateOf(view) {
  return view.state ?? null;
}
