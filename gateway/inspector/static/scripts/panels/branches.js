// Forks of a session: its parent, related sessions, and a comparison of two sessions.

import { button, h } from "../dom.js";
import { fold, nothing, section } from "./common.js";

const chosen = { session: null, other: null, found: null };

/** Return the other sessions with the same root as this session. */
export async function load({ session }) {
  if (chosen.session !== session.id) Object.assign(chosen, { session: session.id, other: null, found: null });
  const rootOf = (record) => record.root ?? record.session_id;
  const known = await session.api.sessions();
  return known.filter((one) => one.session_id !== session.id && rootOf(one) === rootOf(session.record));
}

export function render({ data, session, page, redraw }) {
  if (!data?.length) return null;
  const { parent, parent_epoch: since } = session.record;
  const compare = async () => {
    const other = chosen.other ?? data[0].session_id;
    const found = await page.attempt(() => session.api.compare(session.id, other));
    if (chosen.session === session.id) chosen.found = found ?? null; // unless another session was opened during the request
    redraw();
  };
  const select = h("select", { "aria-label": "Fork to compare with", "data-key": "branches:other", on: { change: (event) => { chosen.other = event.target.value; } } },
    data.map((one) => h("option", { value: one.session_id, selected: one.session_id === chosen.other }, `${one.title ?? "No messages"} · ${one.session_id} · version ${one.epoch}`)));
  return section("Forks",
    parent ? h("p", { class: "quote" }, `This session is a fork of ${parent} at version ${since}. `, button("Open parent", () => page.go(parent), { "data-key": "branches:parent" })) : null,
    h("div", { class: "filter" }, select, button("Compare", compare, { "data-key": "branches:compare" })),
    chosen.found === null ? null : showComparison(chosen.found));
}

function showComparison(found) {
  const { common } = found;
  return [
    h("p", {}, common ? `Both sessions are the same up to version ${common.epoch} of ${common.session_id}.` : "The sessions have no common history."),
    found.turns.length ? h("ol", { class: "entries" }, found.turns.map((pair, at) => showPair(pair, at))) : nothing("No messages since then."),
    ["left", "right"].map((side) => found.effects[side].length ? fold(`Side effects only in ${found[side]}`, found.effects[side], `branches:effects:${side}`) : null),
  ];
}

function showPair({ left, right, differs }, at) {
  return h("li", { class: "entry" },
    h("header", {}, h("h4", {}, differs.length ? `Different: ${differs.join(", ")}` : "Identical")),
    showTurn("This session", left, `branches:${at}:here`),
    showTurn("The other session", right, `branches:${at}:there`));
}

function showTurn(where, turn, key) {
  if (turn === null) return h("p", { class: "quote" }, `${where}: no turn`);
  const calls = turn.tools.map((call) => call.tool_id).join(", ");
  return [
    h("p", {}, h("strong", {}, `${where}: `), turn.said ?? ""),
    h("p", { class: "quote" }, turn.reply ?? ""),
    fold(calls ? `Flows and calls: ${calls}` : "Flows, no calls", { flows: turn.flows, completed: turn.completed, tools: turn.tools }, key),
  ];
}
