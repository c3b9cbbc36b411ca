// The flow stack, top first: states with reasons, slots with sources, and the open question.

import { h } from "../dom.js";
import { describe } from "../session.js";
import { humanize, showTime, showValue } from "../words.js";
import { chip, nothing, section } from "./common.js";
import { drawCourse, outlineOf } from "./flow_course.js";

export const id = "stack";
export const label = "Stack";

const FLAGS = { natural_birth: "Started by a message" };

export function render({ view, session, redraw }) {
  const { state } = view;
  const working = view.epoch === null ? showWork(session.hints) : null;
  if (!state) return [working, nothing("No messages yet. Open flows will appear here.")];
  const stack = [...(state.stack ?? [])].reverse();
  const showCourse = (flow) => {
    const outline = outlineOf(session, flow.dact, redraw);
    const question = (state.ambiguity?.open ?? []).map(({ about }) => about).find((about) => about?.flow_id === flow.flow_id);
    return outline === undefined ? null : drawCourse(flow, outline, question);
  };
  return [
    working,
    section("Flow stack", stack.length ? h("ol", { class: "stack", "aria-label": "Flows, top first" }, stack.map((flow, at) => showFlow(flow, at === 0, at === 0 ? showCourse(flow) : null))) : nothing("No flow is open.")),
    showQuestion(state.ambiguity),
    section("Understanding", showUnderstanding(state)),
    showCompleted(state.completed ?? []),
  ];
}

/** Show what running turns do before they are committed. */
function showWork(hints) {
  if (hints.length === 0) return null;
  return section("Running", h("ol", { class: "log" }, hints.slice(-8).map((event) => h("li", {}, h("span", { class: "number" }, "live"), describe(event)))));
}

function showFlow(flow, isTop, course) {
  const slots = Object.entries(flow.slots ?? {});
  return h("li", { class: isTop ? "flow top" : "flow" },
    h("header", {},
      h("h4", {}, humanize(flow.dact)),
      chip(flow.reason ? `${flow.state}: ${flow.reason}` : flow.state, flow.state)),
    course,
    slots.length ? h("dl", { class: "pairs" }, slots.map(([name, slot]) => [h("dt", {}, humanize(name)), h("dd", {}, showSlot(slot))])) : h("p", { class: "foot" }, "No slot is filled."),
    flow.plan_id ? h("p", { class: "foot" }, "Plan step") : null,
    flow.interruption ? h("p", { class: "foot" }, `Interrupted: ${flow.interruption}`) : null,
    flow.started_at ? h("p", { class: "foot" }, `Since ${showTime(flow.started_at)}`) : null);
}

function showSlot(slot) {
  const about = [slot.source, slot.confirmed ? "confirmed" : null, slot.text && slot.text !== String(slot.value) ? `“${slot.text}”` : null];
  return [showValue(slot.value), " ", h("span", { class: "source" }, about.filter(Boolean).join(", "))];
}

function showQuestion(ambiguity) {
  const open = ambiguity?.open ?? [];
  if (open.length === 0) return null;
  return section("Open question", h("ul", { class: "entries" }, open.map(({ about, words, asked }) => h("li", { class: "entry" },
    h("header", {}, h("h4", {}, humanize(about.slot ?? about.kind)), chip(about.kind, "pending"), asked > 1 ? h("span", { class: "when" }, `asked ${asked} times`) : null),
    words ? h("p", {}, words) : null,
    about.options?.length ? h("p", { class: "quote" }, `Options: ${about.options.map((one) => one.label ?? showValue(one)).join(", ")}`) : null))));
}

function showUnderstanding(state) {
  const flags = Object.entries(state.flags ?? {}).filter(([, set]) => set === true).map(([name]) => FLAGS[name] ?? humanize(name));
  const likely = (state.candidates ?? []).slice(0, 3).map((one) => `${humanize(one.dact)} ${Math.round(one.score * 100)}%`);
  return h("dl", { class: "pairs" },
    h("dt", {}, "Turn"), h("dd", {}, showValue(state.turn)),
    h("dt", {}, "Predicted"), h("dd", {}, [state.predicted_intent, state.predicted_flow && humanize(state.predicted_flow)].filter(Boolean).join(": ") || "–"),
    likely.length ? [h("dt", {}, "Candidates"), h("dd", {}, likely.join(", "))] : null,
    h("dt", {}, "Flags"), h("dd", {}, flags.join(", ") || "none"),
    state.digression?.depth ? [h("dt", {}, "Digressions"), h("dd", {}, showValue(state.digression.depth))] : null);
}

function showCompleted(completed) {
  if (completed.length === 0) return null;
  return section("Recently completed", h("ul", { class: "facts-list" }, [...completed].reverse().slice(0, 8).map((flow) => h("li", {}, chip(humanize(flow.dact), flow.state ?? "Completed")))));
}
