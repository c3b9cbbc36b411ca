// The page: open session, keyboard shortcuts and gateway requests.

import "./trusted.js";
import { Api, makeKey } from "./api.js";
import { Chat } from "./chat.js";
import { Composer } from "./composer.js";
import { askForKey, askForSession, confirm, notify, showHelp } from "./dialogs.js";
import { byId, button, h } from "./dom.js";
import { Inspector, PANELS } from "./inspector.js";
import * as turn from "./panels/turn.js";
import { Replay } from "./replay.js";
import { Session } from "./session.js";
import { Sidebar } from "./sidebar.js";
import { startTheme, toggleTheme } from "./theme.js";
import { humanize } from "./words.js";

const LIVE = { on: "Live", waiting: "Reconnecting", off: "Not connected" };
const DIGITS = 9; // panels with a digit key
const TRY = {
  travel: ["Book a flight from Oslo to Madrid tomorrow", "Plan a weekend in Lisbon for two under 1200 euros", "Show my bookings"],
  analytics: ["Which tables are there", "Preview cars", "Bar chart of average miles per gallon by origin in cars"],
};

class Page {
  constructor() {
    this.api = new Api(askForKey);
    this.session = null;
    this.states = new Map();
    this.wanted = null; // the epoch to show
    this.notify = notify;
    this.chat = new Chat(this);
    this.inspector = new Inspector(this);
    this.sidebar = new Sidebar(this);
    this.composer = new Composer(this);
    this.replay = new Replay(this);
  }

  async start() {
    startTheme(() => this.session !== null && !this.replay.running && this.chat.show(this.session)); // charts use the theme's colors
    this.listen();
    await Promise.all([this.openFromAddress(), this.sidebar.renew(), this.readFacts()]);
  }

  async readFacts() {
    this.facts = await this.attempt(() => this.api.facts());
    byId("flower-link").hidden = !this.facts?.flower_url;
    if (this.facts?.flower_url) byId("flower-link").href = this.facts.flower_url;
  }

  /** Store the session, panel and turn in the URL, so that reloads and links restore them. */
  noteAddress() {
    const session = this.session?.id;
    const panel = this.inspector.current;
    const chosen = panel === turn.id && session !== undefined ? turn.chosenOf(session) : null;
    const hash = new URLSearchParams({ ...(session ? { session } : {}), panel, ...(chosen ? { turn: chosen } : {}) });
    window.history.replaceState(null, "", `#${hash}`);
  }

  listen() {
    byId("new-session").addEventListener("click", () => this.begin());
    byId("use-key").addEventListener("click", () => this.changeKey());
    byId("show-help").addEventListener("click", () => this.help());
    byId("start-replay").addEventListener("click", () => this.replay.start(this.session));
    byId("close-session").addEventListener("click", () => this.closeSession());
    for (const place of document.querySelectorAll(".places button")) place.addEventListener("click", () => this.showPlace(place.dataset.place));
    window.addEventListener("hashchange", () => this.openFromAddress());
    document.addEventListener("keydown", (event) => this.takeKey(event));
  }

  /** Run an action. If the gateway reports a problem, show it and return undefined. */
  async attempt(action) {
    try {
      return await action();
    } catch (problem) {
      if (problem.status === undefined) throw problem;
      notify(problem.message, "bad");
      return undefined;
    }
  }

  // Sessions.

  go(id) {
    this.showPlace("chat");
    if (this.session?.id === id) return;
    window.location.hash = `session=${encodeURIComponent(id)}`;
  }

  async openFromAddress() {
    const wanted = new URLSearchParams(window.location.hash.slice(1));
    const id = wanted.get("session");
    const panel = PANELS.find((one) => one.id === wanted.get("panel"));
    if (wanted.get("turn") !== null) turn.choose(id, wanted.get("turn"));
    if (panel !== undefined) {
      this.showPlace("inspect"); // for small screens, which show one part at a time
      this.inspector.select(panel.id, false);
    }
    if (id === (this.session?.id ?? null) && id !== null) return;
    this.replay.stop();
    this.session?.close();
    this.session = null;
    this.states.clear();
    this.wanted = null;
    this.composer.allow(false);
    this.showLive();
    const session = id === null ? null : new Session(this.api, id);
    if (session !== null && (await this.attempt(() => session.open().then(() => true))) === undefined) return this.show(null);
    if (new URLSearchParams(window.location.hash.slice(1)).get("session") !== id) return session?.close(); // the user has navigated elsewhere
    this.show(session);
    if (session !== null && wanted.get("epoch") !== null) await this.showEpoch(Number(wanted.get("epoch")));
  }

  show(session) {
    this.session = session;
    this.chat.show(session);
    this.inspector.show(session);
    this.sidebar.draw();
    this.showRecord();
    this.composer.show(session);
    this.showLive();
    if (session === null) return;
    session.addEventListener("turns", () => {
      this.chat.render();
      this.showRecord();
    });
    session.addEventListener("turn", (event) => this.chat.renewOne(event.detail));
    session.addEventListener("finished", (event) => this.finished(event.detail));
    session.addEventListener("record", () => {
      this.showRecord();
      this.chat.render(); // a closed session offers no replies
    });
    session.addEventListener("live", () => this.showLive());
    session.addEventListener("problem", (event) => notify(event.detail.message, "bad"));
  }

  finished(entry) {
    this.chat.render();
    if (entry.turn.reply) this.chat.speak(entry);
    if (entry.turn.frame?.display_type === "toast") notify(entry.turn.frame.display_name || entry.turn.reply);
    this.sidebar.renew();
  }

  showRecord() {
    const { session } = this;
    const record = session?.record;
    const empty = session === null || session.entries.length === 0;
    const title = record?.title ?? session?.id;
    byId("app").dataset.session = session?.id ?? "";
    document.title = title === undefined ? "Parley" : `${title} · Parley`;
    byId("session-title").textContent = title ?? "No session";
    byId("session-facts").textContent = record ? [record.title ? session.id : null, humanize(record.domain), `version ${record.epoch}`, record.status, record.user_id ? `user ${record.user_id}` : null, record.parent ? `fork of ${record.parent}` : null].filter(Boolean).join(" · ") : "";
    byId("session-actions").hidden = session === null;
    byId("close-session").disabled = record?.status === "closed";
    byId("empty").hidden = !empty;
    this.composer.allow(session !== null && record?.status !== "closed");
    if (empty) this.showEmpty();
  }

  showEmpty() {
    const key = this.session?.id ?? "";
    const root = byId("empty");
    if (root.dataset.for === key && root.childElementCount > 0) return;
    root.dataset.for = key;
    if (this.session === null) {
      root.replaceChildren(h("h3", {}, "Chat and inspect"), h("p", {}, "Choose a session on the left, or start a new one. The panels show every decision live."), button("New session", () => this.begin(), { class: "primary" }));
      return;
    }
    const examples = TRY[this.session.record.domain] ?? [];
    root.replaceChildren(h("h3", {}, "What would you like to do?"), h("p", {}, "Write a message below. The panels show what happens."),
      h("div", { class: "try" }, examples.map((text) => button(text, () => this.composer.send(text)))));
  }

  showLive() {
    const live = this.session?.live ?? "off";
    byId("live").dataset.live = live;
    byId("live-text").textContent = this.session === null ? "Not connected" : LIVE[live];
  }

  async begin() {
    if (this.facts === undefined) await this.readFacts();
    if (this.facts === undefined) return;
    const wanted = await askForSession(this.facts);
    if (wanted === null) return;
    const made = await this.attempt(() => this.api.createSession(wanted));
    if (made === undefined) return;
    this.go(made.session_id);
    this.sidebar.renew();
  }

  async closeSession() {
    const { session } = this;
    if (!(await confirm("Close this session?", "A closed session doesn't accept messages, but stays readable.", "Close session"))) return;
    if ((await this.attempt(() => session.api.closeSession(session.id))) !== undefined) session.refreshSoon();
  }

  async changeKey() {
    const key = await askForKey(false);
    if (!key) return;
    this.api.setKey(key);
    window.location.reload();
  }

  // Gateway requests for the open session.

  async act(action) {
    this.showEpoch(null);
    await this.session?.submit({ action: { name: action.name, payload: action.payload ?? null } }, action.label ?? humanize(action.name));
  }

  async decide(approval, decision, reason) {
    const decided = await this.attempt(() => this.api.decide(approval.approval_id, decision, reason.trim()));
    if (decided === undefined) return;
    notify(decision === "grant" ? "Granted. The flow continues." : "Denied.");
    this.inspector.refresh("approvals");
    if (decided.resumed_by && this.session !== null) this.session.begin(decided.resumed_by);
  }

  /** Return the state at an epoch, or null. Epochs are immutable, so each state is cached. */
  async stateAt(epoch) {
    if (epoch === 0) return null;
    if (!this.states.has(epoch)) {
      const found = await this.attempt(() => this.api.stateAt(this.session.id, epoch));
      if (found === undefined) return null;
      this.states.set(epoch, found.state);
    }
    return this.states.get(epoch);
  }

  /** Show the state at an epoch, or the current state for null. The last call wins. */
  async showEpoch(epoch) {
    const { session } = this;
    if (session === null) return;
    this.wanted = epoch === null || epoch >= session.epoch ? null : Math.max(0, epoch);
    const { wanted } = this;
    const state = wanted === null ? null : await this.stateAt(wanted);
    if (this.session !== session || this.wanted !== wanted) return;
    if (wanted !== null || !this.replay.running) this.inspector.look(wanted, state);
    this.chat.mark(wanted);
  }

  /** Show the state `by` epochs after the last requested epoch. */
  stepEpoch(by) {
    if (this.session !== null) this.showEpoch((this.wanted ?? this.session.epoch) + by);
  }

  async rollBack(epoch) {
    const { session } = this;
    if (!(await confirm(`Roll back to version ${epoch}?`, "The earlier state becomes a new version. Side effects are not undone.", "Roll back"))) return;
    const record = await this.attempt(() => this.api.rollBack(session.id, epoch));
    if (record === undefined) return;
    await this.showEpoch(null);
    session.refreshSoon();
    notify(`Rolled back to version ${epoch}; the current version is ${record.epoch}.`);
  }

  /** Fork this session at an epoch, and open the fork. */
  async branch(epoch) {
    const { session } = this;
    const made = await this.attempt(() => this.api.branch(session.id, epoch, `session_${makeKey()}`));
    if (made === undefined) return;
    this.go(made.session_id);
    this.sidebar.renew();
    notify(`This session is a fork of ${session.id} at version ${epoch}.`);
  }

  refresh(panel) {
    this.inspector.refresh(panel);
  }

  // Keyboard shortcuts and layout.

  showPlace(place) {
    byId("app").dataset.place = place;
    for (const one of document.querySelectorAll(".places button")) one.setAttribute("aria-pressed", String(one.dataset.place === place));
  }

  get shortcuts() {
    return [
      { keys: ["?"], about: "Show these shortcuts", run: () => this.help() },
      { keys: ["n"], about: "New session", run: () => this.begin() },
      { keys: ["/"], about: "Write a message", run: () => this.composer.focus() },
      { keys: ["s"], about: "Go to the list of sessions", run: () => this.focusSessions() },
      ...PANELS.slice(0, DIGITS).map((panel, at) => ({ keys: [String(at + 1)], about: `Panel: ${panel.label}`, run: () => this.focusPanel(panel.id) })),
      { keys: ["["], about: "One version back", run: () => this.stepEpoch(-1) },
      { keys: ["]"], about: "One version forward", run: () => this.stepEpoch(1) },
      { keys: ["r"], about: "Start or end the replay", run: () => (this.replay.running ? this.replay.stop() : this.session && this.replay.start(this.session)) },
      { keys: ["t"], about: "Switch between light and dark", run: toggleTheme },
      { keys: ["Esc"], about: "Return to the current version; leave the message box" },
    ];
  }

  takeKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (event.key === "Escape") {
      document.activeElement?.blur?.();
      this.replay.stop();
      this.showEpoch(null);
      return;
    }
    if (event.target.closest?.("input:not([type=range]), textarea, select")) return;
    const found = this.shortcuts.find(({ keys, run }) => run !== undefined && keys.includes(event.key));
    if (found === undefined) return;
    event.preventDefault();
    found.run();
  }

  focusSessions() {
    this.showPlace("sessions");
    byId("sessions").querySelector("button[tabindex='0']")?.focus();
  }

  focusPanel(id) {
    this.showPlace("inspect");
    this.inspector.select(id);
    byId(`tab-${id}`).focus();
  }

  help() {
    return showHelp(this.shortcuts);
  }
}

new Page().start();
