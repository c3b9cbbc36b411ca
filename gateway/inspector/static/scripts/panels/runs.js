// Background runs as a graph on the session's timeline. Turns form the spine, and runs branch off. Edges show
// dependencies, and dashed edges show reruns.

import { button, h, s } from "../dom.js";
import { layOut } from "../timeline.js";
import { humanize, showTime, showValue, toneOf } from "../words.js";
import { chip, fold, nothing } from "./common.js";

export const id = "runs";
export const label = "Runs";

const ROW = 38;
const HALF = ROW / 2;
const INDENT = 34;
const SPINE = 10;
const chosen = { run: null, items: null };

export function load({ session }) {
  return session.api.runs(session.id);
}

export function render({ data: runs, session, page, redraw }) {
  if (runs.length === 0) return nothing("No background flow has run for this session yet. Background flows start when there is something to do: a long history to summarize, an idle session, a preference worth keeping.");
  const { rows, edges } = layOut(session.entries, runs);
  const places = new Map(rows.map((row, at) => [row.key, at]));
  return [
    h("div", { class: "graph", style: { height: `${rows.length * ROW}px` } },
      drawEdges(rows, edges, places),
      h("ol", { "aria-label": "Timeline of turns and runs" }, rows.map((row, at) => h("li", { style: { top: `${at * ROW}px`, left: `${row.depth * INDENT}px`, right: "0" } }, row.run ? showNode(row.run, redraw, page) : showTick(row.entry))))),
    showRun(runs.find((run) => run.run_id === chosen.run), page),
  ];
}

function showTick(entry) {
  const { turn } = entry;
  const words = turn?.proposal ? `${humanize(turn.proposal.flow)} proposed “${turn.proposal.kind}”: ${turn.proposal.decision}` : (entry.said ?? turn?.text ?? "(the system)");
  return h("div", { class: "tick" },
    h("span", { class: `bead ${turn?.status === "done" ? "good" : ""}`, "aria-hidden": "true" }),
    h("span", { class: "words" }, `#${turn?.seq ?? "…"} ${words}`),
    h("span", { class: "when" }, showTime(entry.at)));
}

function showNode(run, redraw, page) {
  const { total, done, skipped, failed } = run.progress;
  const numbers = total ? `${done + skipped + failed}/${total}` : "";
  const again = run.redo_count ? `, rerun ${run.redo_count}` : "";
  const choose = async () => {
    chosen.run = chosen.run === run.run_id ? null : run.run_id;
    chosen.items = null;
    redraw();
    if (chosen.run === null) return;
    chosen.items = (await page.attempt(() => page.session.api.runItems(run.run_id))) ?? [];
    redraw();
  };
  return button([
    h("span", { class: "words" }, `${humanize(run.flow)}${again}`),
    h("span", { class: "numbers" }, numbers),
    chip(run.status),
  ], choose, { class: "node", "aria-pressed": String(chosen.run === run.run_id), "data-key": `run:${run.run_id}`, title: `${run.flow}: ${run.status}` });
}

function drawEdges(rows, edges, places) {
  const middle = (at) => at * ROW + HALF;
  const spine = rows.flatMap((row, at) => (row.depth === 0 ? [middle(at)] : []));
  return s("svg", { width: "100%", height: rows.length * ROW, "aria-hidden": "true" },
    spine.length > 1 ? s("line", { class: "spine", x1: SPINE, x2: SPINE, y1: spine[0], y2: spine.at(-1) }) : null,
    edges.map(({ from, to, again }) => {
      const [top, bottom] = [places.get(from), places.get(to)];
      const fromX = rows[top].depth * INDENT + (rows[top].depth === 0 ? SPINE : 16);
      const toX = rows[bottom].depth * INDENT;
      const path = fromX < toX
        ? `M${fromX},${middle(top) + (rows[top].depth === 0 ? 0 : 15)} V${middle(bottom) - 8} Q${fromX},${middle(bottom)} ${fromX + 8},${middle(bottom)} H${toX}`
        : `M${toX},${middle(top)} C${toX - 18},${middle(top)} ${toX - 18},${middle(bottom)} ${toX},${middle(bottom)}`;
      return s("path", { class: again ? "edge again" : "edge", d: path });
    }));
}

function showRun(run, page) {
  if (run === undefined) return h("p", { class: "quote" }, "Choose a run to see its items.");
  const open = ["waiting", "ready", "running"].includes(run.status);
  const finish = (call) => page.attempt(call).then(() => page.refresh("runs"));
  return h("section", { class: "entry", "aria-label": `Run ${run.flow}` },
    h("header", {}, h("h4", {}, humanize(run.flow)), h("span", { class: `chip ${toneOf(run.status)}` }, run.status)),
    h("dl", { class: "pairs" },
      h("dt", {}, "Started"), h("dd", {}, showTime(run.started_at ?? run.created_at) || "–"),
      h("dt", {}, "Ended"), h("dd", {}, showTime(run.finished_at) || "–"),
      h("dt", {}, "Items"), h("dd", {}, `${run.progress.done} done, ${run.progress.skipped} skipped, ${run.progress.failed} failed, of ${run.progress.total}`),
      run.redo_count ? [h("dt", {}, "Rerun"), h("dd", {}, showValue(run.redo_count))] : null,
      run.reason ? [h("dt", {}, "Reason"), h("dd", {}, run.reason)] : null,
      run.error ? [h("dt", {}, "Error"), h("dd", {}, run.error)] : null),
    run.closing === null ? null : fold("Result", run.closing, `closing:${run.run_id}`),
    (chosen.items ?? []).map((item) => fold(`Item ${item.position}: ${item.status}`, { input: item.input, output: item.output, reason: item.reason, error: item.error }, `item:${run.run_id}:${item.position}`)),
    h("div", { class: "line-buttons" },
      open ? button("Cancel run", () => finish(() => page.session.api.cancelRun(run.run_id)), { class: "danger small" }) : button("Run again", () => finish(() => page.session.api.redoRun(run.run_id)), { class: "small" })));
}
