// Results of `parley replay`: the number of turns that differ, and each difference.

import { button, h } from "../dom.js";
import { humanize, showTime } from "../words.js";
import { chip, nothing, section } from "./common.js";

export const id = "replays";
export const label = "Replays";

const chosen = { domain: null, name: null, replay: null };

export async function load({ session }) {
  const { domain } = session.record;
  if (chosen.domain !== domain) Object.assign(chosen, { domain, name: null, replay: null });
  return session.api.replays(domain);
}

export function render({ data: replays, session, page, redraw }) {
  if (replays.length === 0) return nothing(`There are no replays of this domain yet. Run: parley replay --of ${session.record.domain}`);
  const choose = async ({ domain, replay: name }) => {
    Object.assign(chosen, { name, replay: null });
    redraw();
    const replay = await page.attempt(() => session.api.replayReport(domain, name));
    if (chosen.domain === domain && chosen.name === name) chosen.replay = replay ?? null; // unless another replay was chosen during the request
    redraw();
  };
  return [
    section("Replays", h("ol", { class: "entries" }, replays.map((one) => h("li", { class: "entry" },
      h("header", {}, h("h4", {}, one.differing === 0 ? "No differences" : `${one.differing} of ${one.turns} turns differ`), h("span", { class: "when" }, showTime(one.made_at))),
      h("p", { class: "quote" }, `${one.sessions} sessions, ${one.turns} turns${describe(one.by)}`),
      showCounts({ ...one.changed, ...one.left_out }),
      one.differing === 0 ? null : h("div", { class: "line-buttons" }, button("Show the turns", () => choose(one), { class: "small", "aria-label": `Show the turns of ${one.replay}`, "aria-pressed": String(chosen.name === one.replay), "data-key": `replay:${one.replay}` })))))),
    chosen.replay === null ? null : showTurns(chosen.replay),
  ];
}

/** Describe the domain, prompt and model that the replay used, as far as they are set. */
function describe(by) {
  const said = Object.entries(by).filter(([, value]) => value !== null).map(([name, value]) => `${name} ${value}`);
  return said.length ? `, with ${said.join(", ")}` : "";
}

function showCounts(counts) {
  return h("dl", { class: "pairs" }, Object.entries(counts).map(([name, count]) => [h("dt", {}, humanize(name)), h("dd", {}, String(count))]));
}

function showTurns(replay) {
  return section("Turns that differ", h("ul", { class: "entries" }, replay.different.map((turn) => h("li", { class: "entry" },
    h("header", {}, h("h4", {}, turn.said), turn.allowed ? chip("allowed") : null, h("span", { class: "when" }, `${turn.session}, version ${turn.epoch}`)),
    turn.remembers ? h("p", { class: "quote" }, "The replay used current preferences and documents, which may have changed.") : null,
    h("ul", { class: "changes" }, Object.entries(turn.changes).flatMap(([aspect, places]) => places.map((place) => h("li", {},
      h("span", { class: "path" }, [aspect, place.at].filter(Boolean).join(" ")), h("del", {}, show(place.then)), h("ins", {}, show(place.now))))))))));
}

function show(value) {
  return typeof value === "string" ? value : value === null ? "nothing" : JSON.stringify(value);
}
