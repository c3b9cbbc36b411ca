// Render frames: table, chart, card, list, form, confirmation, toast. Unknown types are shown as cards.

import { drawChart } from "./chart.js";
import { button, h } from "./dom.js";
import { showForm } from "./forms.js";
import { showRows, showTable } from "./tables.js";
import { humanize, showValue } from "./words.js";

const FACTS_AT_ONCE = 12;

const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
const areRows = (value) => Array.isArray(value) && value.length > 0 && value.every(isObject);

/** Render a frame. `context`: `readPage(frameId, page)`, `act(action)`, and `current` for the newest answer. */
export function showBlock(frame, context) {
  const block = frame.block ?? { type: frame.display_type };
  const title = block.title || frame.display_name || humanize(block.type ?? "result");
  const inside = (SHOWN[block.type] ?? showCard)(frame, block, { ...context, title });
  return h("section", { class: `block ${block.type}`, "aria-label": title },
    h("header", {},
      h("h3", {}, title),
      frame.source?.length ? h("span", { class: "note" }, `from ${frame.source.map((one) => one.replaceAll("_", " ")).join(", ")}`) : null),
    frame.warning ? h("p", { class: "warning" }, frame.warning) : null,
    frame.error ? h("p", { class: "error" }, frame.error) : null,
    inside);
}

function table(frame, block, { title, readPage }) {
  const rows = Array.isArray(frame.data) ? frame.data.filter(isObject) : [];
  const stored = frame.table_id ?? block.table_id;
  return showTable({ rows, block: { ...block, rows: block.rows ?? frame.rows ?? rows.length }, title, readPage: stored ? (page) => readPage(frame.frame_id, page) : null });
}

function chart(frame, block, { title }) {
  const spec = frame.data ?? {};
  const rows = areRows(spec.data?.values) ? spec.data.values : [];
  const place = h("div", { class: "drawing", role: "img", "aria-label": `Chart: ${title}` }, h("p", { class: "note" }, "Drawing the chart…"));
  const root = h("div", { class: "chart-body" }, place);
  drawChart(place, { ...spec, title: undefined }, `Chart: ${title}`).catch((error) => {
    place.replaceChildren(h("p", { class: "note" }, `This chart can't be drawn here: ${error.message}`));
    data.open = true;
  });
  const data = h("details", {}, h("summary", {}, "Show data"), rows.length ? showRows(rows.slice(0, 500), null, `Data for ${title}`) : h("p", { class: "note" }, "No rows."));
  root.append(data);
  return root;
}

/** Show an object's members, up to three levels of nesting. */
export function showPairs(value, depth = 0) {
  return h("dl", { class: "pairs" }, Object.entries(value).map(([name, one]) => [h("dt", {}, humanize(name)), h("dd", {}, showAny(one, depth))]));
}

function showAny(value, depth) {
  if (isObject(value) && depth < 3) return Object.keys(value).length ? showPairs(value, depth + 1) : "–";
  if (Array.isArray(value) && depth < 3) {
    if (value.length === 0) return "none";
    if (value.every((one) => one === null || typeof one !== "object")) return value.map(showValue).join(", ");
    return h("ul", { class: "items" }, value.slice(0, 50).map((one) => h("li", {}, showAny(one, depth + 1))));
  }
  return showValue(value);
}

function showFacts(items) {
  return h("dl", { class: "card-facts" }, items.map(({ label, name, value }) => h("div", {}, h("dt", {}, humanize(label ?? name)), h("dd", {}, showValue(value)))));
}

/** Show the first facts, and collapse the others and nested values. */
function showCard(frame, block) {
  const data = isObject(frame.data) ? frame.data : null;
  const items = (block.items ?? Object.entries(data ?? {}).map(([name, value]) => ({ name, value })))
    .filter(({ value }) => value !== null && value !== "" && typeof value !== "object");
  const nested = Object.entries(data ?? {}).filter(([, value]) => value !== null && typeof value === "object" && Object.keys(value).length > 0);
  if (items.length === 0 && nested.length === 0) return h("div", { class: "inside" }, showAny(frame.data, 0));
  const rest = items.slice(FACTS_AT_ONCE);
  return h("div", { class: "inside" },
    showFacts(items.slice(0, FACTS_AT_ONCE)),
    rest.length ? h("details", {}, h("summary", {}, `${rest.length} more`), showFacts(rest)) : null,
    nested.map(([name, value]) => h("details", {}, h("summary", {}, humanize(name)), showAny(value, 0))));
}

function list(frame) {
  const items = Array.isArray(frame.data) ? frame.data : Object.values(frame.data ?? {});
  return h("div", { class: "inside" }, h("ul", { class: "items" }, items.slice(0, 200).map((item) => h("li", {}, showAny(item, 0)))));
}

function confirmation(frame, block, { act, current }) {
  const actions = block.actions ?? [];
  return [
    showCard(frame, block),
    current && actions.length ? h("div", { class: "inside row-buttons" }, actions.map((action) => button(action.label, () => act(action)))) : null,
  ];
}

function form(frame, block, { act, current, title }) {
  const [submit] = block.actions ?? [];
  return h("div", { class: "inside" }, showForm({ fields: Array.isArray(frame.data) ? frame.data : [], submit, title, act, current }));
}

const SHOWN = { table, chart, card: showCard, list, form, confirmation, toast: showCard };
