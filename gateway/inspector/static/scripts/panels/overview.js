// Turns of all sessions: metrics by day, and a search by words and quality.

import { drawChart } from "../chart.js";
import { button, h } from "../dom.js";
import { showRows } from "../tables.js";
import { humanize, showCost, showDuration, showTime } from "../words.js";
import { chip, linkOf, nothing, section } from "./common.js";

export const id = "overview";
export const label = "All sessions";
export const everywhere = true; // shown even if no session is open

const PAGE = 25;
const DAYS = 14;
const MEASURES = { turns: "Turns", failed: "Failed", not_understood: "Not understood", median_ms: "Median time (ms)", cost: "Cost (US$)" };
const MARKS = { failed: "Failed", not_understood: "Not understood", rated_down: "Thumbs down", over_budget: "Over budget" };
const wanted = { q: "", user_id: "", failed: false, not_understood: false, rated_down: false, over_budget: false, seconds: "", dollars: "" };
const charts = { of: null, shown: null };

export async function load({ page }) {
  const [days, users, found] = await Promise.all([page.api.turnsByDay(DAYS), page.api.turnsByUser(), page.api.searchTurns(query())]);
  return { days: days.map((day) => ({ ...day, cost: dollars(day) })), users, ...found };
}

const dollars = ({ cost_micros: micros }) => micros / 1_000_000;

/** Return the query parameters for the search, without empty filters. */
function query(before) {
  const { q, user_id: user, seconds, dollars: cost, ...marks } = wanted;
  const set = Object.keys(marks).filter((name) => marks[name]).map((name) => [name, "true"]);
  const given = { q: q.trim(), min_ms: seconds && seconds * 1000, min_cost_micros: cost && Math.round(cost * 1_000_000), user_id: user.trim(), before };
  return new URLSearchParams([...set, ...Object.entries({ ...given, limit: PAGE }).filter(([, value]) => value)]);
}

export function render({ data, page, redraw }) {
  return [
    section("Days", data.days.length ? showDays(data.days) : nothing("No turns in the last two weeks.")),
    section("Users in the last 7 days", data.users.length ? showRows(data.users.map(describeUser), null, "Turns by user") : nothing("No turns in the last week.")),
    section("Turns in the last 7 days",
      showFilter(page),
      data.turns.length ? h("ol", { class: "entries", "aria-label": "Turns found" }, data.turns.map(showTurn)) : nothing("No turns found."),
      data.next === null ? null : button("Older turns", async () => {
        const more = await page.attempt(() => page.api.searchTurns(query(data.next)));
        if (more === undefined) return;
        Object.assign(data, { turns: [...data.turns, ...more.turns], next: more.next });
        redraw();
      }, { "data-key": "overview:older" })),
  ];
}

/** Show one small chart per metric, drawn once per result. */
function showDays(days) {
  if (charts.of !== days) Object.assign(charts, { of: days, shown: h("div", { class: "day-charts" }, Object.entries(MEASURES).map(([name, title]) => showMeasure(days, name, title))) });
  const rows = days.map((day) => ({ day: day.day, ...Object.fromEntries(Object.entries(MEASURES).map(([name, title]) => [title, day[name] === null ? null : Math.round(day[name] * 1e6) / 1e6])) }));
  return [charts.shown, h("details", { "data-key": "overview:days" }, h("summary", {}, "As a table"), showRows(rows, null, "Turns by day"))];
}

function showMeasure(days, name, title) {
  const place = h("div", { class: "drawing" });
  const values = days.map((day) => ({ day: day.day.slice(8), value: day[name] }));
  const most = Math.max(...values.map((one) => one.value));
  const x = { field: "day", type: "ordinal", title: null, scale: { domain: lastDays() }, axis: { labelAngle: 0, labelOverlap: true, labelSeparation: 6 } };
  const y = { field: "value", type: "quantitative", title: null, scale: { domain: [0, most || 1] }, axis: { tickCount: 3, tickMinStep: name === "cost" ? 0 : 1 } };
  const spec = { data: { values }, mark: "bar", height: 60, encoding: { x, y } };
  // Draw after insertion into the page, because the element has no width before that.
  requestAnimationFrame(() => drawChart(place, spec, `${title} by day`).catch((problem) => place.replaceChildren(nothing(problem.message))));
  return h("figure", {}, h("figcaption", {}, title), place);
}

function describeUser(user) {
  return { user: user.user_id ?? "none", turns: user.turns, failed: user.failed, "over budget": user.over_budget, tokens: user.tokens, "US$": dollars(user) };
}

/** Return the day of the month, as two digits, for every day in the chart, including days without turns. */
function lastDays() {
  return Array.from({ length: DAYS }, (_, at) => new Date(Date.now() - (DAYS - 1 - at) * 86_400_000).toISOString().slice(8, 10));
}

function showFilter(page) {
  const box = (name) => h("label", {}, h("input", { type: "checkbox", name, checked: wanted[name], "data-key": `overview:${name}` }), MARKS[name]);
  const least = (name, text, step) => h("label", {}, text, h("input", { type: "number", name, min: "0", step, value: wanted[name], "data-key": `overview:${name}` }));
  const keep = ({ target: { name, type, checked, value } }) => {
    wanted[name] = type === "checkbox" ? checked : value;
  };
  const find = (event) => {
    event.preventDefault();
    page.refresh(id);
  };
  return h("form", { class: "turn-filter", role: "search", "aria-label": "Turns in all sessions", on: { input: keep, submit: find } },
    h("input", { type: "search", name: "q", value: wanted.q, "aria-label": "Words in a message or reply", placeholder: "Words in a message or reply", maxlength: "200", "data-key": "overview:q" }),
    h("input", { type: "search", name: "user_id", value: wanted.user_id, "aria-label": "User", placeholder: "User", maxlength: "200", "data-key": "overview:user" }),
    Object.keys(MARKS).map(box),
    least("seconds", "Minimum seconds", "0.1"),
    least("dollars", "Minimum US$", "any"),
    h("button", { type: "submit", "data-key": "overview:find" }, "Find"));
}

function showTurn(turn) {
  const about = [humanize(turn.domain), turn.user_id ? `user ${turn.user_id}` : null, showDuration(turn.ran_ms), turn.cost_micros ? showCost(turn.cost_micros) : null, showTime(turn.accepted_at)];
  return h("li", { class: "entry" },
    h("header", {},
      h("h4", {}, h("a", { href: linkOf(turn) }, turn.said ?? (turn.action ? humanize(turn.action) : "(the system)"))),
      Object.keys(MARKS).filter((name) => (name === "over_budget" ? turn.refused_by : turn[name])).map((name) => chip(MARKS[name], "failed"))),
    turn.reply ? h("p", { class: "quote" }, turn.reply) : null,
    h("p", { class: "when" }, about.filter(Boolean).join(" · ")));
}
