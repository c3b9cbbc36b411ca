// The page's copy of a session: turns, events and state. Events are hints; the API is authoritative.
// Change events: "record", "turns", "turn" and "finished" (with the entry), "events", "runs", "approvals", "live",
// "problem".

import { makeKey } from "./api.js";
import { follow } from "./stream.js";

export const FINISHED = new Set(["done", "failed", "cancelled", "rejected", "quarantined"]);
const ENDING = new Set(["answer", "failed", "cancelled", "rejected", "quarantined"]);
const STATE_PAUSE_MS = 60;
const MOST_EVENTS = 2000;
const MOST_TURNS = 500;

export class Session extends EventTarget {
  constructor(api, id) {
    super();
    this.api = api;
    this.id = id;
    this.record = null;
    this.entries = []; // {key, turnId, turn, said, action, streamed, doing, problem, at}
    this.events = [];
    this.live = "off";
    this.closed = false;
    this.sending = Promise.resolve();
    this.handled = Promise.resolve();
    this.timers = new Map();
  }

  tell(what, detail) {
    this.dispatchEvent(new CustomEvent(what, { detail }));
  }

  async open() {
    this.record = await this.api.session(this.id);
    await this.readTurns();
    if (this.closed) return;
    this.stop = follow(this.api, this.id, 0, (event) => this.take(event), (live) => {
      this.live = live;
      this.tell("live");
      if (live === "on") this.refreshSoon();
    });
  }

  close() {
    this.closed = true;
    this.stop?.();
    for (const timer of this.timers.values()) clearTimeout(timer);
  }

  /** Read the turns of the session, and those that a fork inherits, with their messages and ratings. */
  async readTurns() {
    const [own, history, ratings, inherited] = await Promise.all([this.api.turns(this.id), this.api.history(this.id, 1000), this.api.ratings(this.id), this.inherit(this.record)]);
    const turns = [...inherited, ...own];
    for (const turn of turns.sort((one, other) => one.seq - other.seq)) {
      const entry = this.ensure(turn.turn_id);
      entry.turn = turn;
      entry.said ??= turn.text;
      entry.at ??= turn.accepted_at;
      if (!FINISHED.has(turn.status)) this.await(entry);
    }
    this.sort();
    this.recall(history);
    for (const one of ratings.reverse()) {
      const entry = this.find(one.turn_id);
      if (entry !== undefined) entry.feedback = one.rating;
    }
    this.tell("turns");
  }

  /** Return the turns that a fork inherits from its ancestors, if they still exist. */
  async inherit({ parent, parent_epoch: until }) {
    if (!parent) return [];
    try {
      const [record, turns] = await Promise.all([this.api.session(parent), this.api.turns(parent)]);
      return [...(await this.inherit(record)), ...turns].filter((turn) => turn.epoch !== null && turn.epoch <= until);
    } catch (problem) {
      if (problem.status !== 404) throw problem;
      return [];
    }
  }

  /** Add facts from the history: the times of turns, and the chosen actions of turns without text. */
  recall(history) {
    for (const line of history.filter((one) => one.role === "user")) {
      const entry = this.find(line.turn_id);
      if (entry === undefined) continue;
      entry.at ??= line.at;
      if (line.form !== "action" || entry.said !== null || !line.content.startsWith("{")) continue; // the action was erased
      entry.action = JSON.parse(line.content);
      entry.said = this.labelOf(entry);
    }
  }

  /** Return the label of an entry's action, from its button in the previous answer, or else its name. */
  labelOf(entry) {
    const before = this.entries[this.entries.indexOf(entry) - 1];
    const { name, payload } = entry.action;
    const found = (before?.turn?.actions ?? []).find((one) => one.name === name && JSON.stringify(one.payload) === JSON.stringify(payload));
    return found?.label ?? name.replaceAll("_", " ");
  }

  find(turnId) {
    return this.entries.find((entry) => entry.turnId === turnId);
  }

  ensure(turnId) {
    let entry = this.find(turnId);
    if (entry === undefined) {
      entry = { key: turnId, turnId, turn: null, said: null, action: null, streamed: "", doing: "", problem: null };
      this.entries.push(entry);
    }
    return entry;
  }

  sort() {
    const place = (entry) => entry.turn?.seq ?? entry.seq ?? Number.MAX_SAFE_INTEGER;
    this.entries.sort((one, other) => place(one) - place(other));
  }

  get last() {
    return this.entries.at(-1) ?? null;
  }

  get epoch() {
    return this.record?.epoch ?? 0;
  }

  // Sending.

  /** Send a text, or an action with the label that the user saw. */
  submit(input, label) {
    const key = makeKey();
    const entry = { key, turnId: null, turn: null, said: label, action: input.action ?? null, streamed: "", doing: "", problem: null };
    entry.input = input;
    this.entries.push(entry);
    this.tell("turns");
    this.sending = this.sending.then(() => this.send(entry));
    return this.sending;
  }

  async send(entry) {
    try {
      entry.problem = null;
      const receipt = await this.api.submit(this.id, entry.input, entry.key);
      entry.turnId = receipt.turn_id;
      entry.seq = receipt.seq;
      this.entries = this.entries.filter((other) => other === entry || other.turnId !== receipt.turn_id);
      this.sort();
      this.await(entry);
    } catch (problem) {
      if (problem.status === undefined) throw problem;
      entry.problem = problem;
    }
    this.tell("turns");
  }

  /** Resend a failed request with the same idempotency key, so that it creates at most one turn. */
  sendAgain(entry) {
    this.sending = this.sending.then(() => this.send(entry));
    return this.sending;
  }

  /** Poll a turn until it ends, in case no events arrive. */
  async await(entry) {
    if (entry.awaited) return;
    entry.awaited = true;
    while (!this.closed && !FINISHED.has(entry.turn?.status)) {
      try {
        this.settle(entry, await this.api.turn(entry.turnId, 25));
      } catch (problem) {
        if (problem.status === undefined) throw problem;
        if (problem.status !== 0 && problem.status < 500 && problem.status !== 429) break;
        await new Promise((resolve) => setTimeout(resolve, 1500));
      }
    }
    entry.awaited = false;
  }

  settle(entry, turn) {
    const before = entry.turn?.status;
    entry.turn = turn;
    entry.said ??= turn.text;
    if (FINISHED.has(turn.status)) {
      entry.streamed = "";
      entry.doing = "";
      entry.at ??= new Date().toISOString();
      this.refreshSoon();
      if (entry.said === null && turn.reply) this.recallSoon();
    }
    this.sort();
    this.tell(before === undefined ? "turns" : "turn", entry);
    if (FINISHED.has(turn.status) && !FINISHED.has(before)) this.tell("finished", entry);
  }

  // Listening.

  take(event) {
    this.handled = this.handled.then(() => this.sending).then(() => (this.closed ? undefined : this.handle(event)));
  }

  handle(event) {
    if (event.type === "token") return this.takeToken(event);
    if (event.number !== null && ENDING.has(event.type)) this.forgetHints(event.turn_id);
    this.events.push({ ...event, at: event.at ?? new Date().toISOString() }); // live events have no time
    if (this.events.length > MOST_EVENTS) this.events.shift();
    this.tell("events", event);
    if (event.type.startsWith("approval")) this.tell("approvals");
    if (event.type === "run_progress" || event.type.startsWith("proposal")) this.later("runs", 250);
    if (event.turn_id) this.takeOfTurn(event);
    if (event.number !== null) this.refreshSoon();
    return undefined;
  }

  /** Drop a finished turn's live events, because the log now contains them. */
  forgetHints(turnId) {
    this.events = this.events.filter((event) => event.number !== null || event.turn_id !== turnId);
  }

  /** Return the live events of unfinished turns. */
  get hints() {
    return this.events.filter((event) => event.number === null && !FINISHED.has(this.find(event.turn_id)?.turn?.status));
  }

  takeToken(event) {
    const entry = this.find(event.turn_id) ?? this.begin(event.turn_id);
    if (entry === null || FINISHED.has(entry.turn?.status)) return;
    const { text = "", offset = entry.streamed.length } = event.payload;
    entry.streamed = beginning(entry.streamed, offset) + text;
    entry.doing = "";
    this.tell("turn", entry);
  }

  /** Add a turn that another client has sent. Return null if the turn is older than the turns read. */
  begin(turnId) {
    const oldest = this.entries.find((entry) => entry.turnId !== null)?.turnId;
    if (this.entries.length >= MOST_TURNS && oldest !== undefined && turnId < oldest) return null;
    const entry = this.ensure(turnId);
    this.tell("turns");
    this.await(entry);
    this.api.turn(turnId).then((turn) => this.settle(entry, turn), () => undefined); // `await` reports the problem
    return entry;
  }

  takeOfTurn(event) {
    const entry = this.find(event.turn_id) ?? this.begin(event.turn_id);
    if (entry === null || FINISHED.has(entry.turn?.status)) return;
    if (ENDING.has(event.type)) {
      this.api.turn(event.turn_id).then((turn) => this.settle(entry, turn), () => this.await(entry));
      return;
    }
    entry.doing = describe(event);
    this.tell("turn", entry);
  }

  // Reloading after events.

  later(what, pause) {
    if (this.timers.has(what)) return;
    this.timers.set(what, setTimeout(() => {
      this.timers.delete(what);
      this.tell(what);
    }, pause));
  }

  /** Reread the history, to find an action that another client has chosen. */
  recallSoon() {
    if (this.timers.has("recall")) return;
    this.timers.set("recall", setTimeout(async () => {
      this.timers.delete("recall");
      try {
        this.recall(await this.api.history(this.id, 50));
        this.tell("turns");
      } catch (problem) {
        if (problem.status === undefined) throw problem;
        this.tell("problem", problem);
      }
    }, STATE_PAUSE_MS));
  }

  refreshSoon() {
    if (this.timers.has("record")) return;
    this.timers.set("record", setTimeout(async () => {
      this.timers.delete("record");
      try {
        this.record = await this.api.session(this.id);
        this.tell("record");
      } catch (problem) {
        if (problem.status === undefined) throw problem;
        this.tell("problem", problem);
      }
    }, STATE_PAUSE_MS));
  }
}

/** Return whether a turn shows nothing in the conversation, such as a system turn for a proposal. */
export function isSilent(entry) {
  return entry.said === null && entry.action === null && entry.streamed === "" && !entry.turn?.reply;
}

/** Return the first `count` characters, counted as code points like in the gateway. */
function beginning(text, count) {
  return count >= text.length ? text : [...text].slice(0, count).join("");
}

/** Describe the activity that an event reports, in a few words. */
export function describe(event) {
  const about = event.payload ?? {};
  const name = (text) => String(text ?? "").replaceAll("_", " ");
  switch (event.type) {
    case "tool_started": return `Calling ${name(about.tool_id)}`;
    case "tool_finished": return `${name(about.tool_id)}: ${about.status ?? "done"}`;
    case "flow_pushed": return `Starting ${name(about.dact)}`;
    case "flow_popped": return `Finished ${name(about.dact)}`;
    case "handover_requested": return "Handed off to an operator";
    case "approval_requested": return "Waiting for approval";
    case "result_awaited": return "Waiting for a result";
    case "result_arrived": return "A result has arrived";
    case "result_overdue": return "A result is overdue";
    case "accepted": return "Queued";
    default: return "Thinking";
  }
}
