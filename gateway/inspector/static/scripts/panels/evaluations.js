// Results of `parley eval`: metrics of each run compared with the previous run, confusions, turns with problems.

import { button, h } from "../dom.js";
import { humanize, showTime } from "../words.js";
import { nothing, section } from "./common.js";

export const id = "evaluations";
export const label = "Evaluations";

const chosen = { domain: null, name: null, run: null };

export async function load({ session }) {
  const { domain } = session.record;
  if (chosen.domain !== domain) Object.assign(chosen, { domain, name: null, run: null });
  return session.api.evaluations(domain);
}

export function render({ data: runs, session, page, redraw }) {
  if (runs.length === 0) return nothing(`There are no evaluations of this domain yet. Run: parley eval ${session.record.domain}`);
  const choose = async ({ domain, run: name }) => {
    Object.assign(chosen, { name, run: null });
    redraw();
    const run = await page.attempt(() => session.api.evaluation(domain, name));
    if (chosen.domain === domain && chosen.name === name) chosen.run = run ?? null; // unless another run was chosen during the request
    redraw();
  };
  return [
    section("Runs", h("ol", { class: "entries" }, runs.map((run, at) => h("li", { class: "entry" },
      h("header", {}, h("h4", {}, run.name), h("span", { class: "when" }, showTime(run.made_at))),
      h("p", { class: "quote" }, `${run.conversations} conversations, ${run.turns} turns`),
      showFigures(run, runs.slice(at + 1).find((older) => older.name === run.name)),
      h("div", { class: "line-buttons" }, button("Show its turns", () => choose(run), { class: "small", "aria-label": `Show the turns of ${run.run}`, "aria-pressed": String(chosen.name === run.run), "data-key": `evaluation:${run.run}` })))))),
    chosen.run === null ? null : [showConfusion(chosen.run), showFaults(chosen.run)],
  ];
}

/** Show each metric, and its change since the previous run with the same name. */
function showFigures(run, before) {
  return h("dl", { class: "pairs" }, Object.entries(run.figures).filter(([, value]) => value !== null).map(([name, value]) => {
    const change = before === undefined ? 0 : value - (before.figures[name] ?? value);
    return [h("dt", {}, humanize(name)), h("dd", {}, value.toFixed(3), change === 0 ? null : h("span", { class: "source" }, ` ${change > 0 ? "+" : "−"}${Math.abs(change).toFixed(3)}`))];
  }));
}

function showConfusion(run) {
  const wrong = run.confusion.filter((one) => one.expected !== one.taken);
  return section("Misclassified flows", wrong.length
    ? h("ul", { class: "changes" }, wrong.map((one) => h("li", {}, `${humanize(one.expected)} was classified as ${humanize(one.taken)}`, h("span", { class: "when" }, `${one.turns} ×`))))
    : nothing("None."));
}

function showFaults(run) {
  const faulty = run.outcomes.flatMap((outcome) => outcome.turns.filter((turn) => turn.faults.length > 0).map((turn) => ({ ...turn, conversation: outcome.conversation })));
  return section("Failed turns", faulty.length
    ? h("ul", { class: "entries" }, faulty.map((turn) => h("li", { class: "entry" },
      h("header", {}, h("h4", {}, turn.said), h("span", { class: "when" }, turn.read_by)),
      turn.answer ? h("p", { class: "quote" }, turn.answer) : null,
      turn.faults.map((fault) => h("p", { class: "error" }, fault)),
      h("p", { class: "quote" }, turn.conversation))))
    : nothing("None. All turns were as expected."));
}
