// A drawing of a flow's progress: its slots, confirmation and tools in order, with the current step.

import { s } from "../dom.js";
import { humanize, showValue } from "../words.js";

const ROW = 26;
const MIDDLE = ROW / 2;
const SPINE = 12;
const LONGEST = 44; // characters of a label with its value
const outlines = new Map(); // flows by domain, or null while they are loading

/** Return the flow as declared by its domain, or undefined until it is loaded, which calls `redraw`. */
export function outlineOf(session, dact, redraw) {
  const { domain } = session.record;
  if (!outlines.has(domain)) {
    outlines.set(domain, null);
    session.api.flows(domain).then((flows) => {
      outlines.set(domain, flows);
      redraw();
    }, (problem) => {
      outlines.delete(domain); // retry at the next redraw
      if (problem.status === undefined) throw problem;
    });
  }
  return outlines.get(domain)?.find((flow) => flow.dact === dact);
}

/** Return the flow's steps in order, as `{name, value, done, asked}`. */
function stepsOf(flow, outline, question) {
  const filled = flow.slots ?? {};
  const isAnswered = (slot) => slot.name in filled || outline.slots.some((other) => slot.group && other.group === slot.group && other.name in filled);
  const needed = outline.slots.filter((slot) => slot.name in filled || slot.name === question?.slot || (slot.priority !== "optional" && !isAnswered(slot)));
  const { candidate, grant } = flow.consent ?? {};
  const consents = [
    ...(outline.confirm ? [{ name: "Confirmation", done: candidate?.agreed === true }] : []),
    ...(flow.reason === "awaiting_approval" || grant ? [{ name: "Approval", done: Boolean(grant) }] : []),
  ];
  const held = candidate?.tool_id ?? outline.tools.at(-1); // the call that waits for confirmation
  return [
    ...needed.map(({ name }) => ({ name: humanize(name), value: filled[name]?.value, done: name in filled, asked: name === question?.slot })),
    ...outline.tools.flatMap((tool) => [...(tool === held ? consents : []), { name: humanize(tool), done: candidate !== undefined && outline.tools.indexOf(tool) < outline.tools.indexOf(held) }]),
  ];
}

export function drawCourse(flow, outline, question) {
  const steps = stepsOf(flow, outline, question);
  if (steps.length === 0) return null;
  const asked = steps.findIndex((step) => step.asked);
  const here = asked >= 0 ? asked : steps.findIndex((step) => !step.done);
  const says = here < 0 ? "all steps are done" : `step ${here + 1} of ${steps.length}, ${steps[here].name}`;
  const middle = (at) => at * ROW + MIDDLE;
  return s("svg", { class: "flow-course", width: "100%", height: steps.length * ROW, role: "img", "aria-label": `${humanize(flow.dact)}: ${says}` },
    s("line", { x1: SPINE, x2: SPINE, y1: middle(0), y2: middle(steps.length - 1) }),
    steps.map((step, at) => s("g", { class: at === here ? "here" : step.done ? "done" : "open" },
      s("circle", { cx: SPINE, cy: middle(at), r: at === here ? 7 : 5 }),
      s("text", { x: SPINE * 2 + 4, y: middle(at), dy: "0.35em" }, shorten(step.value === undefined ? step.name : `${step.name}: ${showValue(step.value)}`)))));
}

function shorten(text) {
  return text.length > LONGEST ? `${text.slice(0, LONGEST - 1)}…` : text;
}
