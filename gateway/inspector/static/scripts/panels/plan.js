// The session's plan: steps, progress and revisions.

import { h } from "../dom.js";
import { humanize, showTime } from "../words.js";
import { chip, fold, nothing, section } from "./common.js";

export const id = "plan";
export const label = "Plan";

/** Return the session's latest plan, or null. */
export async function load({ session }) {
  const flows = [...(session.record.state?.stack ?? []), ...(session.record.state?.completed ?? [])];
  const hasPlan = flows.some((flow) => flow.steps?.length) || session.events.some((event) => event.type === "plan");
  return hasPlan ? session.api.plan(session.id) : null;
}

export function render({ data: plan, view }) {
  const shown = view.epoch === null ? plan : planOf(view.state);
  if (!shown) return nothing(view.epoch === null ? "There is no plan. Multi-step tasks create plans." : "There was no plan at this version.");
  return [
    h("div", { class: "plan-head" },
      h("h4", {}, shown.goal || humanize(shown.dact)),
      h("div", { class: "line" },
        h("div", { class: "progress", role: "progressbar", "aria-label": "Plan progress", "aria-valuemin": "0", "aria-valuemax": String(shown.total), "aria-valuenow": String(shown.completed) },
          h("span", { style: { width: `${shown.total ? (100 * shown.completed) / shown.total : 0}%` } })),
        h("span", {}, `${shown.completed} of ${shown.total}`),
        chip(shown.reason ? `${shown.state}: ${shown.reason}` : shown.state, shown.state))),
    showSteps(shown.steps ?? []),
    view.epoch === null ? showRevisions(plan.revisions ?? []) : null,
  ];
}

/** Return the plan in an earlier state, or null. */
function planOf(state) {
  const flow = (state?.stack ?? []).find((one) => one.steps?.length) ?? (state?.completed ?? []).findLast((one) => one.steps?.length);
  if (flow === undefined) return null;
  const completed = flow.steps.filter((step) => step.state === "Completed").length;
  return { ...flow, total: flow.steps.length, completed };
}

const MARKS = { Completed: ["done", "✓"], Active: ["active", "▸"], Invalid: ["lost", "✕"] };

function showSteps(steps) {
  const names = new Map(steps.map((step, at) => [step.name, at + 1]));
  return h("ol", { class: "steps", "aria-label": "Steps" }, steps.map((step, at) => {
    const [kind, sign] = MARKS[step.state] ?? ["", String(at + 1)];
    const needs = (step.needs ?? []).map((name) => names.get(name) ?? name);
    const notes = [humanize(step.dact), needs.length ? `after ${needs.join(", ")}` : null, step.note || null];
    return h("li", { class: kind },
      h("span", { class: "mark", "aria-hidden": "true" }, sign),
      h("div", {},
        h("p", { class: "what" }, humanize(step.purpose || step.name)),
        h("p", { class: "how" }, notes.filter(Boolean).join(" · ")),
        Object.keys(step.outputs ?? {}).length ? fold("Results", step.outputs, `plan:${step.name}`) : null),
      chip(step.reason ? `${step.state}: ${step.reason}` : step.state, step.state));
  }));
}

function showRevisions(revisions) {
  if (revisions.length === 0) return null;
  return section("Revisions", h("ol", { class: "entries" }, [...revisions].reverse().map((revision) => h("li", { class: "entry" },
    h("header", {}, h("h4", {}, `${revision.number}. ${humanize(revision.outcome)}`), h("span", { class: "when" }, showTime(revision.at))),
    revision.why ? h("p", { class: "quote" }, revision.why) : null,
    h("p", { class: "quote" }, `${revision.progress} steps done${revision.source ? `, from ${revision.source}` : ""}`),
    fold("Steps", (revision.steps ?? []).map((step) => `${step.purpose || step.name}: ${step.state}`), `revision:${revision.number}`),
    revision.search ? fold("Plans compared", showSearch(revision.search), `search:${revision.number}`) : null))));
}

/** Show the plans that a tree search compared, with score, steps and problems. The chosen plan is marked. */
function showSearch({ nodes, chosen }) {
  return nodes.slice(1).map(({ node, score, state, faults }) => (
    { score, chosen: node === chosen, steps: state.map((step) => step.purpose || step.dact), faults }));
}
