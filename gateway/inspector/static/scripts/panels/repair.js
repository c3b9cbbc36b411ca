// The repair console, for operators: a session's problems, applicable repairs, and a form to preview and apply one.

import { makeKey } from "../api.js";
import { button, h } from "../dom.js";
import { humanize } from "../words.js";
import { chip, fold, nothing, section } from "./common.js";

export const id = "repair";
export const label = "Repair";

const FIELDS = {
  drop: ["flow"],
  mark: ["fingerprint", "outcome", "result"],
  take_over: [],
  say: ["text"],
  hand_back: [],
  release: [],
  retry: ["turn"],
  give_up: ["turn"],
};
const OUTCOMES = ["done", "not done"];
const drafts = new Map(); // by session: {kind, given, preview, problem}

export function load({ session }) {
  return session.api.repairs(session.id);
}

export function render({ data, session, page, redraw }) {
  if (!drafts.has(session.id)) drafts.set(session.id, { kind: "drop", given: {}, why: "", preview: null, problem: "" });
  const draft = drafts.get(session.id);
  const take = (repair) => {
    const { kind, done, result, ...given } = repair;
    Object.assign(draft, { kind, given: { ...given, result: result ? JSON.stringify(result) : "" }, preview: null, problem: "" });
    if (kind === "mark") draft.given.outcome = done ? "done" : "not done";
    redraw();
  };
  return [
    data.person ? h("p", { class: "quote" }, `${data.person} is answering the user.`) : null,
    section("Problems", listOf(data.wrong, "The state has no problems.")),
    data.turns.length ? section("Turns", h("ul", { class: "entries" }, data.turns.map(showTurn))) : null,
    section("Suggested repairs", data.fits.length ? h("ul", { class: "entries" }, data.fits.map((fit) => showFit(fit, take))) : nothing("None.")),
    section("Repair", showForm(draft, { session, page, redraw })),
    draft.preview ? section("Preview", showPreview(draft, { session, page, redraw })) : null,
  ];
}

function listOf(lines, otherwise) {
  return lines.length ? h("ul", {}, lines.map((line) => h("li", {}, line))) : nothing(otherwise);
}

function showTurn(turn) {
  return h("li", { class: "entry" },
    h("header", {}, h("h4", {}, `#${turn.seq}`), chip(turn.status)),
    turn.error ? h("p", { class: "quote" }, turn.error) : null);
}

function showFit({ repair, why }, take) {
  const { kind, ...given } = repair;
  const words = Object.values(given).filter((one) => typeof one === "string" && one).join(" ");
  return h("li", { class: "entry" },
    h("header", {}, h("h4", {}, `${humanize(kind)} ${repair.done === undefined ? "" : repair.done ? "as done" : "as not done"}`), button("Choose", () => take(repair), { "aria-label": `Choose: ${humanize(kind)} ${words}` })),
    h("p", { class: "quote" }, why));
}

function showForm(draft, { session, page, redraw }) {
  const change = (name) => (event) => {
    draft.given[name] = event.target.value;
    draft.preview = null;
  };
  const fields = FIELDS[draft.kind].map((name) => h("label", {}, h("span", {}, humanize(name)),
    name === "outcome"
      ? choose(OUTCOMES, draft.given.outcome ?? "done", change(name))
      : h("input", { type: "text", maxlength: "4000", value: draft.given[name] ?? "", on: { input: change(name) } })));
  const preview = async (event) => {
    event.preventDefault();
    draft.problem = "";
    try {
      draft.key = makeKey();
      draft.preview = (await page.attempt(() => page.api.previewRepairs(session.id, [read(draft)]))) ?? null;
    } catch (problem) {
      if (!(problem instanceof SyntaxError)) throw problem;
      draft.problem = "Not valid JSON.";
    }
    redraw();
  };
  return h("form", { class: "fields", "aria-label": "Repair", on: { submit: preview } },
    h("label", {}, h("span", {}, "Kind"), choose(Object.keys(FIELDS), draft.kind, (event) => {
      Object.assign(draft, { kind: event.target.value, preview: null });
      redraw();
    })),
    fields,
    draft.problem ? h("p", { class: "problem" }, draft.problem) : null,
    h("div", { class: "row-buttons" }, h("button", { type: "submit" }, "Preview")));
}

function choose(values, chosen, onChange) {
  const select = h("select", { on: { change: onChange } }, values.map((one) => h("option", { value: one }, humanize(one))));
  select.value = chosen;
  return select;
}

/** Return the repair in the API's format. Throws SyntaxError for invalid JSON. */
function read({ kind, given }) {
  const repair = { kind };
  for (const name of FIELDS[kind]) repair[name] = given[name] ?? "";
  if (kind === "mark") {
    const { outcome, result } = repair;
    return { kind, fingerprint: repair.fingerprint, done: outcome !== "not done", result: JSON.parse(result || "{}") };
  }
  return repair;
}

function showPreview(draft, { session, page, redraw }) {
  const { preview } = draft;
  const make = async () => {
    const made = await page.attempt(() => page.api.repair(session.id, { repairs: [read(draft)], epoch: preview.epoch, why: draft.why, idempotency_key: draft.key }));
    if (made === undefined) return;
    Object.assign(draft, { given: {}, why: "", preview: null });
    page.notify("Repaired.");
    if (made.turn_id) session.begin(made.turn_id);
    page.refresh(id);
    redraw();
  };
  const why = h("input", { type: "text", maxlength: "1000", value: draft.why, on: { input: (event) => { draft.why = event.target.value; } } });
  return [
    listOf(preview.done, "No changes."),
    preview.told ? h("p", { class: "quote" }, `Message to the user: ${preview.told}`) : null,
    preview.refused.length ? h("div", { role: "alert" }, listOf(preview.refused, "")) : null,
    fold("Changes to the state", preview.diff, "repair:diff"),
    preview.refused.length ? null : h("div", { class: "fields" },
      h("label", {}, h("span", {}, "Why"), why),
      h("div", { class: "row-buttons" }, button("Repair", () => (draft.why.trim() ? make() : why.focus()), { class: "primary" }))),
  ];
}
