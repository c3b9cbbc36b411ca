import { button, byId, h, replace, rove } from "./dom.js";
import { humanize, showAge } from "./words.js";

const RENEW_EVERY_MS = 5000;

export class Sidebar {
  constructor(page) {
    this.page = page;
    this.sessions = [];
    rove(byId("sessions"), "button", { vertical: true });
    byId("session-search").addEventListener("input", () => this.draw());
    setInterval(() => document.visibilityState === "visible" && this.known && this.renew(), RENEW_EVERY_MS);
  }

  async renew() {
    let sessions;
    try {
      sessions = await this.page.api.sessions();
    } catch (problem) {
      if (problem.status === undefined) throw problem;
      if (!this.known) this.page.notify(problem.message, "bad");
      return;
    }
    this.known = true;
    this.sessions = sessions;
    this.draw();
  }

  draw() {
    const open = this.page.session?.id;
    const words = byId("session-search").value.toLowerCase().split(/\s+/);
    const found = this.sessions.filter((one) => words.every((word) => `${one.session_id} ${one.title ?? ""} ${one.domain} ${one.user_id ?? ""} ${one.status}`.toLowerCase().includes(word)));
    const tabbed = found.some((one) => one.session_id === open) ? open : found[0]?.session_id;
    replace(byId("sessions"), found.map((one) => h("li", { "aria-current": one.session_id === open ? "true" : null },
      button([
        h("span", { class: "name" }, one.title ?? one.session_id.replace(/^session_/, "")),
        h("span", { class: "about" }, [humanize(one.domain), one.status === "closed" ? "closed" : null, one.pending ? `${one.pending} waiting` : null, showAge(one.updated_at)].filter(Boolean).join(" · ")),
      ], () => this.page.go(one.session_id), { title: one.session_id, "data-key": `session:${one.session_id}`, tabindex: one.session_id === tabbed ? "0" : "-1" }))));
  }
}
