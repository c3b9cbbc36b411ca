// The pane next to the conversation: groups of tabs, and the selected panel, whose data is loaded when it is shown.

import { button, byId, h, replace, rove } from "./dom.js";
import * as approvals from "./panels/approvals.js";
import { nothing } from "./panels/common.js";
import * as documents from "./panels/documents.js";
import * as epochs from "./panels/epochs.js";
import * as evaluations from "./panels/evaluations.js";
import * as events from "./panels/events.js";
import * as journal from "./panels/journal.js";
import * as memory from "./panels/memory.js";
import * as notes from "./panels/notes.js";
import * as overview from "./panels/overview.js";
import * as plan from "./panels/plan.js";
import * as repair from "./panels/repair.js";
import * as replays from "./panels/replays.js";
import * as runs from "./panels/runs.js";
import * as stack from "./panels/stack.js";
import * as turn from "./panels/turn.js";

const GROUPS = [
  { name: "Conversation", panels: [stack, plan, approvals, epochs] },
  { name: "Turn", panels: [turn, journal, events] },
  { name: "Data", panels: [notes, memory, documents] },
  { name: "Operations", panels: [overview, runs, evaluations, replays, repair] },
];
export const PANELS = GROUPS.flatMap((group) => group.panels);

/** Panels to reload, by the session's change event. */
const RENEWED_BY = { record: ["plan", "notes", "journal", "epochs", "runs", "approvals", "turn", "memory", "repair"], runs: ["runs", "notes", "memory", "documents"], approvals: ["approvals"] };

export class Inspector {
  constructor(page) {
    this.page = page;
    this.session = null;
    this.view = { epoch: null, state: null, event: null };
    this.data = new Map();
    this.reading = new Map();
    this.current = stack.id;
    this.makeTabs();
  }

  makeTabs() {
    const tabs = byId("tabs");
    for (const group of GROUPS) {
      group.last = group.panels[0].id;
      group.button = button(group.name, () => this.select(group.last));
      byId("groups").append(group.button);
    }
    for (const panel of PANELS) {
      tabs.append(button(panel.label, () => this.select(panel.id), { role: "tab", id: `tab-${panel.id}`, "aria-controls": `panel-${panel.id}` }));
      byId("panels").append(h("div", { class: "panel", role: "tabpanel", id: `panel-${panel.id}`, "aria-labelledby": `tab-${panel.id}`, tabindex: "0" }));
    }
    rove(tabs, "[role=tab]", { onMove: (tab) => this.select(tab.id.slice(4)) });
    this.mark();
  }

  /** Select a panel. Store it in the URL unless `noted` is false. */
  select(id, noted = true) {
    this.current = id;
    this.mark();
    if (noted) this.page.noteAddress();
    this.refresh(id);
  }

  /** Mark the current panel's group and tab, and hide the tabs of other groups. */
  mark() {
    for (const group of GROUPS) {
      const holds = group.panels.some((panel) => panel.id === this.current);
      group.button.setAttribute("aria-pressed", String(holds));
      if (holds) group.last = this.current;
      for (const panel of group.panels) {
        const selected = panel.id === this.current;
        const tab = byId(`tab-${panel.id}`);
        tab.hidden = !holds;
        tab.setAttribute("aria-selected", String(selected));
        tab.tabIndex = selected ? 0 : -1;
        byId(`panel-${panel.id}`).hidden = !selected;
      }
    }
  }

  show(session) {
    this.session = session;
    this.view = { epoch: null, state: session?.record?.state ?? null, event: null };
    this.data.clear();
    this.countApprovals();
    this.showBanner();
    this.refresh(this.current);
    if (session === null) return undefined;
    if (this.current !== approvals.id) this.refresh(approvals.id);
    session.addEventListener("record", () => this.renew("record"));
    session.addEventListener("runs", () => this.renew("runs"));
    session.addEventListener("approvals", () => this.renew("approvals"));
    session.addEventListener("events", () => [events.id, stack.id].includes(this.current) && this.drawSoon());
    return undefined;
  }

  renew(cause) {
    if (this.view.epoch === null) this.view.state = this.session.record.state ?? null;
    if (cause === "record" && this.current !== overview.id) this.drawSoon();
    for (const id of RENEWED_BY[cause]) if (id === this.current || id === approvals.id) this.refresh(id);
  }

  /** Load a panel's data and draw the panel. A call while the panel loads triggers another load afterward. */
  async refresh(id) {
    const { session } = this;
    const panel = PANELS.find((one) => one.id === id);
    if (panel.load === undefined || (session === null && !panel.everywhere)) return this.draw();
    if (this.reading.has(id)) {
      this.reading.set(id, true);
      return undefined;
    }
    this.reading.set(id, false);
    let data;
    let failure = null;
    try {
      data = await panel.load({ session, page: this.page });
    } catch (problem) {
      if (problem.status === undefined) throw problem;
      failure = problem.message;
    }
    const again = this.reading.get(id);
    this.reading.delete(id);
    if (session === this.session) {
      this.data.set(id, { data, failure });
      this.countApprovals();
      if (id === this.current) this.draw();
      if (again) this.refresh(id);
    } else {
      this.refresh(id);
    }
    return undefined;
  }

  drawSoon() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = undefined;
      this.draw();
    });
  }

  draw() {
    const panel = PANELS.find((one) => one.id === this.current);
    const root = byId(`panel-${panel.id}`);
    if (this.session === null && !panel.everywhere) return replace(root, nothing("Choose a session, or start a new one."));
    const known = this.data.get(panel.id);
    if (panel.load !== undefined && known === undefined) return undefined;
    if (known?.failure) return replace(root, nothing(known.failure));
    const scrolled = byId("panels").scrollTop;
    replace(root, panel.render({
      data: known?.data,
      session: this.session,
      view: this.view,
      page: this.page,
      redraw: () => this.drawSoon(),
      decide: (...given) => this.page.decide(...given),
    }));
    if (panel.id !== events.id) byId("panels").scrollTop = scrolled;
    else if (this.view.event === null) byId("panels").scrollTop = byId("panels").scrollHeight;
    else root.querySelector("[aria-current=step]")?.scrollIntoView({ block: "center" });
    return undefined;
  }

  countApprovals() {
    const waiting = approvals.count({ data: this.data.get(approvals.id)?.data });
    const count = () => (waiting ? [" ", h("span", { class: "count" }, String(waiting), h("span", { class: "unseen" }, " waiting"))] : []);
    const group = GROUPS.find(({ panels }) => panels.includes(approvals));
    byId(`tab-${approvals.id}`).replaceChildren(approvals.label, ...count());
    group.button.replaceChildren(group.name, ...count());
  }

  /** Show an earlier state, or the current state if `epoch` is null. */
  look(epoch, state, event = null) {
    this.view = { epoch, state: epoch === null ? (this.session?.record?.state ?? null) : state, event };
    this.showBanner();
    this.drawSoon();
  }

  showBanner() {
    const { epoch } = this.view;
    const banner = byId("epoch-banner");
    banner.hidden = epoch === null;
    if (epoch === null) return banner.replaceChildren();
    const shown = banner.querySelector("p");
    const text = `Version ${epoch} of ${this.session.epoch}: an earlier state of the session`;
    if (shown !== null) {
      shown.textContent = text;
      return undefined;
    }
    return banner.replaceChildren(h("p", {}, text), button("Compare", () => this.select(epochs.id)), button("Back to now", () => this.page.showEpoch(null)));
  }
}
