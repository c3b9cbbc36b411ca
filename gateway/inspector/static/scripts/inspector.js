// The side beside the conversation: tabs, and the panel that is shown. Data are read when a panel is looked at.

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
import * as plan from "./panels/plan.js";
import * as repair from "./panels/repair.js";
import * as replays from "./panels/replays.js";
import * as runs from "./panels/runs.js";
import * as stack from "./panels/stack.js";
import * as turn from "./panels/turn.js";

export const PANELS = [stack, plan, runs, notes, journal, events, epochs, approvals, turn, memory, documents, evaluations, replays, repair];

/** Which changes of a session make which panel read its data anew. */
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
    for (const panel of PANELS) {
      const selected = panel.id === this.current;
      tabs.append(button(panel.label, () => this.select(panel.id), { role: "tab", id: `tab-${panel.id}`, "aria-controls": `panel-${panel.id}`, "aria-selected": String(selected), tabindex: selected ? "0" : "-1" }));
      byId("panels").append(h("div", { class: "panel", role: "tabpanel", id: `panel-${panel.id}`, "aria-labelledby": `tab-${panel.id}`, tabindex: "0", hidden: !selected }));
    }
    rove(tabs, "[role=tab]", { onMove: (tab) => this.select(tab.id.slice(4)) });
  }

  /** Go to a panel; it is noted in the address unless it comes from there. */
  select(id, noted = true) {
    this.current = id;
    for (const panel of PANELS) {
      const selected = panel.id === id;
      const tab = byId(`tab-${panel.id}`);
      tab.setAttribute("aria-selected", String(selected));
      tab.tabIndex = selected ? 0 : -1;
      byId(`panel-${panel.id}`).hidden = !selected;
    }
    byId(`tab-${id}`).scrollIntoView({ block: "nearest", inline: "nearest" });
    if (noted) this.page.noteAddress();
    this.refresh(id);
  }

  show(session) {
    this.session = session;
    this.view = { epoch: null, state: session?.record?.state ?? null, event: null };
    this.data.clear();
    this.countApprovals();
    this.showBanner();
    if (session === null) return this.draw();
    this.refresh(this.current);
    if (this.current !== approvals.id) this.refresh(approvals.id);
    session.addEventListener("record", () => this.renew("record"));
    session.addEventListener("runs", () => this.renew("runs"));
    session.addEventListener("approvals", () => this.renew("approvals"));
    session.addEventListener("events", () => [events.id, stack.id].includes(this.current) && this.drawSoon());
    return undefined;
  }

  renew(cause) {
    if (this.view.epoch === null) this.view.state = this.session.record.state ?? null;
    if (cause === "record") this.drawSoon();
    for (const id of RENEWED_BY[cause]) if (id === this.current || id === approvals.id) this.refresh(id);
  }

  /** Read a panel's data and draw it; while it is being read, a further wish is remembered. */
  async refresh(id) {
    const { session } = this;
    const panel = PANELS.find((one) => one.id === id);
    if (session === null || panel.load === undefined) return this.draw();
    if (this.reading.has(id)) {
      this.reading.set(id, true);
      return undefined;
    }
    this.reading.set(id, false);
    let data;
    let failure = null;
    try {
      data = await panel.load({ session });
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
    if (this.session === null) return replace(root, nothing("Choose a session, or start a new one."));
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
    const tab = byId(`tab-${approvals.id}`);
    tab.replaceChildren(approvals.label, ...(waiting ? [" ", h("span", { class: "count" }, String(waiting), h("span", { class: "unseen" }, " waiting"))] : []));
  }

  /** Show a state of the past, or the present for null. */
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
    const text = `Version ${epoch} of ${this.session.epoch}: the session as it was`;
    if (shown !== null) {
      shown.textContent = text;
      return undefined;
    }
    return banner.replaceChildren(h("p", {}, text), button("Compare", () => this.select(epochs.id)), button("Back to now", () => this.page.showEpoch(null)));
  }
}
