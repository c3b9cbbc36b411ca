// Earlier states: differences to the current state, rollback and forks.

import { button, h } from "../dom.js";
import { findChanges } from "../diff.js";
import * as branches from "./branches.js";
import { nothing, section } from "./common.js";

export const id = "epochs";
export const label = "Versions";

const MOST = 300;
const ORDER = ["stack", "completed", "ambiguity", "approvals", "effects", "flags"];

export const { load } = branches;

export function render({ data, session, view, page, redraw }) {
  const last = session.epoch;
  if (last === 0) return nothing("Every turn creates a version. There are no versions yet.");
  const epoch = view.epoch ?? last;
  const slider = h("input", { type: "range", min: "0", max: String(last), step: "1", "aria-label": "Version", "data-key": "epochs:slider", on: { change: (event) => page.showEpoch(Number(event.target.value)) } });
  slider.value = String(epoch);
  return h("div", { class: "epochs" },
    h("div", { class: "stepper" },
      button("Earlier", () => page.stepEpoch(-1), { disabled: epoch <= 0, "data-key": "epochs:back" }),
      slider,
      button("Later", () => page.stepEpoch(1), { disabled: epoch >= last, "data-key": "epochs:on" }),
      h("output", { "aria-live": "polite" }, `${epoch} of ${last}`)),
    h("p", { class: "quote" }, "The other panels show the session at this version."),
    view.epoch === null ? [nothing("This is the current version. Go to an earlier version to see what has changed."), branchFrom(epoch, page)] : showPast({ session, view, page }),
    branches.render({ data, session, page, redraw }));
}

function showPast({ session, view, page }) {
  const changes = findChanges(view.state ?? {}, session.record.state ?? {}).sort((one, other) => weigh(one) - weigh(other));
  return [
    h("div", { class: "line-buttons" },
      button("Back to now", () => page.showEpoch(null), { "data-key": "epochs:now" }),
      button(`Roll back to version ${view.epoch}`, () => page.rollBack(view.epoch), { class: "danger", "data-key": "epochs:roll" }),
      branchFrom(view.epoch, page)),
    section(changes.length ? `${changes.length} changes since then` : "No changes since then",
      h("ul", { class: "changes" }, changes.slice(0, MOST).map(showChange))),
  ];
}

function branchFrom(epoch, page) {
  return button(`Fork at version ${epoch}`, () => page.branch(epoch), { "data-key": "epochs:branch", disabled: epoch === 0 });
}

/** Return the sort rank of a difference. The most relevant differences have the lowest rank. */
function weigh({ path }) {
  const at = ORDER.indexOf(path.split(" › ")[0]);
  return at < 0 ? ORDER.length : at;
}

function showChange({ path, before, after }) {
  return h("li", {},
    h("span", { class: "path" }, path),
    before === undefined ? null : h("del", {}, h("span", { class: "unseen" }, "Then: "), short(before)),
    after === undefined ? null : h("ins", {}, h("span", { class: "unseen" }, "Now: "), short(after)));
}

function short(value) {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length > 300 ? `${text.slice(0, 300)}…` : text;
}
