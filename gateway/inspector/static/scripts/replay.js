// Replay a session from its event log, step by step or automatically, without changing the session.

import { button, byId, h } from "./dom.js";
import { readLog } from "./stream.js";
import { humanize } from "./words.js";

const PACES = [["0.5", "Slow"], ["1", "Normal"], ["3", "Fast"]];
const STEP_MS = 900;
const ENDING = new Set(["answer", "failed"]);

export class Replay {
  constructor(page) {
    this.page = page;
    this.at = 0;
    this.pace = 1;
    this.timer = null;
  }

  get running() {
    return this.steps !== undefined;
  }

  /** Start a replay of a session before its first event. */
  async start(session) {
    const log = await this.page.attempt(() => readLog(session.api, session.id));
    if (log === undefined || this.page.session !== session) return undefined;
    const steps = log.filter((event) => event.number !== null && event.turn_id);
    if (steps.length === 0) return this.page.notify("There are no events to replay yet.");
    this.session = session;
    this.steps = steps;
    this.makeControls();
    this.go(0);
    this.play.focus();
    return undefined;
  }

  stop() {
    if (!this.running) return;
    this.pause();
    this.steps = undefined;
    byId("replay").hidden = true;
    byId("replay").replaceChildren();
    this.page.chat.limit(null);
    this.page.inspector.look(null, null);
  }

  makeControls() {
    this.slider = h("input", { type: "range", min: "0", max: String(this.steps.length), "aria-label": "Position in the replay", on: { input: (event) => this.jump(Number(event.target.value)) } });
    this.step = h("span", { class: "step", role: "status" });
    this.play = button("Play", () => (this.timer === null ? this.run() : this.pause()));
    const pace = h("select", { "aria-label": "Speed", on: { change: (event) => {
      this.pace = Number(event.target.value);
    } } }, PACES.map(([value, label]) => h("option", { value, selected: value === "1" }, label)));
    byId("replay").replaceChildren(
      button("Back", () => this.jump(this.at - 1), { "aria-label": "One event back" }),
      this.play,
      button("Forward", () => this.jump(this.at + 1), { "aria-label": "One event forward" }),
      this.slider, this.step, pace, button("End replay", () => this.stop()));
    byId("replay").hidden = false;
  }

  run() {
    if (this.at >= this.steps.length) this.at = 0;
    this.play.textContent = "Pause";
    const next = async () => {
      await this.go(this.at + 1);
      if (this.timer === null || !this.running) return;
      if (this.at >= this.steps.length) this.pause();
      else this.timer = setTimeout(next, STEP_MS / this.pace);
    };
    this.timer = setTimeout(next, STEP_MS / this.pace / 3);
  }

  pause() {
    clearTimeout(this.timer);
    this.timer = null;
    this.play.textContent = "Play";
  }

  jump(at) {
    this.pause();
    return this.go(at);
  }

  /** Show the messages after `at` events, and the state after the last turn that had finished by then. */
  async go(at) {
    this.at = Math.min(Math.max(at, 0), this.steps.length);
    this.slider.value = String(this.at);
    const event = this.steps[this.at - 1] ?? null;
    this.step.textContent = event === null ? "Before the first event" : `${this.at} of ${this.steps.length}: ${humanize(event.type)}`;
    const until = new Map();
    let epoch = 0;
    for (const one of this.steps.slice(0, this.at)) {
      const ended = ENDING.has(one.type);
      until.set(one.turn_id, ended || until.get(one.turn_id) === "answered" ? "answered" : "asked");
      if (ended) epoch = this.session.find(one.turn_id)?.turn?.epoch ?? epoch;
    }
    this.page.chat.limit(until);
    const wanted = this.at;
    const state = await this.page.stateAt(epoch);
    if (this.running && wanted === this.at) this.page.inspector.look(epoch, state, event);
  }
}
