// One turn: message, interpretation, calls and timeline.

import { showPairs } from "../blocks.js";
import { h } from "../dom.js";
import { humanize, showCost, showDuration, showNumber } from "../words.js";
import { chip, fold, nothing, section } from "./common.js";
import { offerCase } from "./turn_case.js";
import { showCalls, showFacts } from "./turn_facts.js";

export const id = "turn";
export const label = "Turn";

const SAID = 60; // characters of a message in the list of turns
const ACRONYMS = { nlu: "NLU", pex: "PEX", res: "RES" };
const choice = { session: null, turnId: null };

/** Choose the turn to show, or null for the last one. */
export function choose(session, turnId) {
  Object.assign(choice, { session, turnId });
}

/** Return the chosen turn of a session, or null. */
export const chosenOf = (session) => (choice.session === session ? choice.turnId : null);

/** Read the chosen turn, or else the last turn, with its journal, side effects and approvals. */
export async function load({ session }) {
  const { api } = session;
  const entries = session.entries.filter((entry) => entry.turn !== null && entry.turn !== undefined);
  const wanted = chosenOf(session.id) ?? entries.at(-1)?.turnId;
  if (wanted === undefined) return null;
  const known = entries.find((entry) => entry.turnId === wanted);
  const [turn, journal, effects, approvals] = await Promise.all([known?.turn ?? api.turn(wanted), api.turnJournal(wanted), api.effects(session.id), api.approvals(session.id)]);
  if (known === undefined) entries.unshift({ turnId: wanted, turn, said: turn.text }); // older than the turns that were read
  const own = (all) => all.filter((one) => one.turn_id === wanted);
  return { turn, entries, ...journal, effects: own(effects), approvals: own(approvals) };
}

export function render({ data, session, page }) {
  if (!data) return nothing("No turn yet.");
  const select = h("select", { id: "turn-shown", "data-key": "turn:shown", on: { change: (event) => {
    choose(session.id, event.target.value);
    page.noteAddress();
    page.inspector.refresh(id);
  } } }, [...data.entries].reverse().map((entry) => h("option", { value: entry.turnId }, `#${entry.turn.seq} ${(entry.said ?? humanize(entry.action?.name ?? "")).slice(0, SAID)}`)));
  select.value = data.turn_id;
  const predictions = data.signals.filter((signal) => signal.type === "prediction");
  return [
    h("div", { class: "filter" }, h("label", { class: "unseen", for: "turn-shown" }, "Turn"), select),
    showFacts(data),
    section("Why this flow", predictions.length ? predictions.map((signal) => showPrediction(signal.payload)) : nothing("No interpretation: this turn was a click or a system turn, or hasn't ended.")),
    showCalls(data),
    section("Timeline", data.signals.length ? showCourse(data) : nothing("Details appear once the turn has ended.")),
    offerCase(data.turn_id, session.api, page),
  ];
}

function showPrediction({ kind, source, flows = [], ...more }) {
  return h("div", { class: "entry" },
    showPairs({ kind: humanize(kind), "interpreted by": humanize(source), ...more }),
    flows.length ? h("ul", { class: "candidates", "aria-label": "Candidates" }, flows.map((flow) => h("li", {},
      h("span", {}, humanize(flow.dact)),
      h("span", { class: "progress", "aria-hidden": "true" }, h("span", { style: { width: `${Math.round(100 * Math.min(1, flow.score))}%` } })),
      h("span", { class: "when" }, flow.score.toFixed(2))))) : null);
}

/** Show signals with their start relative to the turn's start, and their duration. */
function showCourse({ started_at: started, finished_at: finished, signals }) {
  const began = Date.parse(started);
  const ends = signals.map((signal) => Date.parse(signal.time) - began);
  const whole = Math.max(1, Date.parse(finished) - began, ...ends);
  return h("ol", { class: "entries", "aria-label": "Timeline" }, signals.map((signal, at) => {
    const { duration_ms: lasted = 0, messages, answer, ...facts } = signal.payload;
    const start = Math.max(0, ends[at] - lasted);
    return h("li", { class: "entry" },
      h("header", {}, h("h4", {}, titleOf(signal)), signal.payload.ok === false ? chip("failed") : null,
        h("span", { class: "when" }, [`after ${showDuration(start)}`, lasted ? `for ${showDuration(lasted)}` : null].filter(Boolean).join(", "))),
      h("div", { class: "course", "aria-hidden": "true" }, h("span", { style: { "margin-left": `${(100 * start) / whole}%`, width: `${Math.max(0.5, (100 * lasted) / whole)}%` } })),
      signal.type === "model_call" ? [h("p", { class: "quote" }, costOf(facts)), showDialogue(messages, answer, signal.id)] : null,
      fold("Details", facts, `signal:${signal.id}`));
  }));
}

/** Show a model's prompt and answer, if they are stored. */
function showDialogue(messages, answer, key) {
  if (messages === undefined) return h("p", { class: "quote" }, "The call's prompt and answer aren't stored. Set PARLEY_KEEP_PROMPTS to store them.");
  return [
    quote("Prompt", messages, `prompt:${key}`),
    answer === null ? h("p", { class: "quote" }, "No answer.") : quote("Answer", [answer], `answer:${key}`),
  ];
}

function quote(name, messages, key) {
  return h("details", { "data-key": key }, h("summary", {}, name), messages.map((message) => h("figure", { class: "message" },
    h("figcaption", {}, humanize(message.role)),
    h("pre", { class: "json", tabindex: "0", role: "region", "aria-label": `${name}: ${message.role}` }, message.text))));
}

function titleOf({ type, source, payload }) {
  const about = payload.prompt_id ?? payload.tool_id ?? payload.check ?? payload.rung ?? payload.templates?.join(", ");
  return `${humanize(type)} (${ACRONYMS[source] ?? humanize(source)})${about ? `: ${about}` : ""}`;
}

function costOf({ model, outcome, tokens, cached_tokens: cached, reasoning_tokens: thought, cost_micros: micros, requests }) {
  const parts = [cached ? `${showNumber(cached)} cached` : null, thought ? `${showNumber(thought)} for reasoning` : null].filter(Boolean);
  const counted = `${showNumber(tokens ?? 0)} tokens${parts.length ? ` (${parts.join(", ")})` : ""}`;
  return [model, outcome, counted, micros ? showCost(micros) : null, requests > 1 ? `${requests} requests` : null].filter(Boolean).join(" · ");
}
