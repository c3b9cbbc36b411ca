// The conversation: one element per turn, which is updated when its turn changes.

import { showBlock } from "./blocks.js";
import { button, byId, h, replace } from "./dom.js";
import { showForm } from "./forms.js";
import { readMessage, showCode, toPlain } from "./markdown.js";
import { linkOf } from "./panels/common.js";
import { FINISHED, isSilent } from "./session.js";
import { drawThumb } from "./icons.js";
import { humanize, showDuration } from "./words.js";

const NEAR_END = 80;

export class Chat {
  /** `page`: provides `showEpoch(epoch)`, `notify(text, tone)` and action `names`. */
  constructor(page) {
    this.page = page;
    this.list = byId("turns");
    this.scroller = byId("scroll");
    this.shown = new Map(); // {element, made} by entry key
    this.until = null; // see `limit`
    this.stays = true; // keep scrolled to the end, because charts are drawn after their answers
    this.scroller.addEventListener("scroll", () => {
      this.stays = this.isAtEnd();
      this.offerEnd();
    });
    new ResizeObserver(() => this.stays && this.goToEnd()).observe(this.list);
    byId("go-to-end").addEventListener("click", () => this.goToEnd());
  }

  show(session) {
    this.session = session;
    this.shown.clear();
    this.until = null;
    this.list.replaceChildren();
    byId("spoken").textContent = "";
    if (session === null) return;
    this.render();
    this.goToEnd();
  }

  get entries() {
    const spoken = (this.session?.entries ?? []).filter((entry) => !isSilent(entry));
    return this.until === null ? spoken : spoken.filter((entry) => this.until.has(entry.turnId));
  }

  get last() {
    return (this.session?.entries ?? []).findLast((entry) => !isSilent(entry)) ?? null;
  }

  /** Show only the turns in `until`, a map from turn ID to "asked" (no answer yet) or "answered". Null shows all. */
  limit(until) {
    this.until = until;
    this.shown.clear();
    this.list.replaceChildren();
    this.render();
    this.goToEnd();
  }

  render() {
    if (this.session === null) return;
    const atEnd = this.isAtEnd();
    const entries = this.entries;
    const keys = new Set(entries.map((entry) => entry.key));
    for (const [key, { element }] of this.shown) {
      if (!keys.has(key)) {
        element.remove();
        this.shown.delete(key);
      }
    }
    entries.forEach((entry, at) => {
      this.renew(entry);
      const { element } = this.shown.get(entry.key);
      if (this.list.children[at] !== element) this.list.insertBefore(element, this.list.children[at] ?? null);
    });
    if (atEnd) this.goToEnd();
    this.offerEnd();
  }

  /** Recreate a turn's element if it would look different. */
  renew(entry) {
    const phase = this.until?.get(entry.turnId) ?? "answered";
    const current = entry === this.last && this.until === null && this.session.record?.status !== "closed";
    const made = JSON.stringify([entry.said, entry.turn, entry.streamed, entry.doing, entry.problem?.message, entry.feedback, current, phase]);
    const known = this.shown.get(entry.key);
    if (known?.made === made) return;
    const element = known?.element ?? h("li", { class: "turn", "data-turn": entry.key });
    this.shown.set(entry.key, { element, made });
    replace(element, this.ask(entry), phase === "asked" ? null : this.answer(entry, current));
  }

  renewOne(entry) {
    if (!this.entries.includes(entry)) return;
    if (!this.shown.has(entry.key)) return this.render();
    const atEnd = this.isAtEnd();
    this.renew(entry);
    if (atEnd) this.goToEnd();
    return undefined;
  }

  ask(entry) {
    if (entry.said === null) return null;
    const chose = entry.action !== null;
    return h("div", { class: chose ? "said action" : "said" }, h("span", { class: "unseen" }, chose ? "You chose: " : "You: "), entry.said);
  }

  answer(entry, current) {
    const { turn } = entry;
    if (entry.problem !== null) return this.showProblem(entry);
    if (turn === null || !FINISHED.has(turn.status)) return this.showProgress(entry);
    const context = {
      current,
      readPage: async (frameId, page) => rowsOf(await this.session.api.framePage(this.session.id, frameId, page)),
      act: (action) => this.page.act(action),
    };
    const form = turn.interaction?.kind === "form" ? turn.interaction : null;
    const code = turn.code_snippet;
    return h("div", { class: "answer" },
      h("span", { class: "unseen" }, "Answer:"),
      turn.status === "done" ? null : h("p", { class: "failed" }, `${humanize(turn.status)}${turn.error?.code ? ` (${turn.error.code})` : ""}`),
      h("div", { class: "text" }, readMessage(turn.reply ?? "")),
      turn.frames.map((frame) => showBlock(frame, context)),
      code ? showCode(code.code, code.language) : null,
      form && current ? h("section", { class: "block form", "aria-label": "Form" }, h("div", { class: "inside" }, showForm({ fields: form.fields, submit: form.submit, title: "Still needed", act: context.act, current }))) : null,
      current && form === null ? this.showReplies(turn) : null,
      this.showMeta(entry));
  }

  /** Show the newest answer's suggested replies as buttons. */
  showReplies(turn) {
    const actions = (turn.actions ?? []).filter((action) => action.name !== "show_page");
    if (actions.length === 0) return null;
    return h("div", { class: "suggestions", role: "group", "aria-label": "Suggested replies" },
      actions.map((action, at) => button(action.label, () => this.page.act(action), { "data-key": `${turn.turn_id}:reply:${at}` })));
  }

  showProgress(entry) {
    const waiting = h("div", { class: "doing" },
      h("span", { class: "dots", "aria-hidden": "true" }, h("span"), h("span"), h("span")),
      h("span", {}, entry.doing || (entry.turn?.status === "queued" ? "Queued" : "Thinking")),
      entry.turnId ? button("Stop", () => this.page.attempt(() => this.session.api.cancelTurn(entry.turnId)), { class: "quiet small", "data-key": `${entry.key}:stop` }) : null);
    if (entry.streamed === "") return h("div", { class: "answer" }, waiting);
    return h("div", { class: "answer streaming" }, h("div", { class: "text" }, readMessage(entry.streamed)), entry.doing ? waiting : null);
  }

  showProblem(entry) {
    return h("div", { class: "answer" },
      h("p", { class: "failed", role: "alert" }, entry.problem.message),
      h("div", { class: "row-buttons" }, button("Send again", () => this.session.sendAgain(entry), { class: "small" })));
  }

  showMeta(entry) {
    const { turn } = entry;
    const name = `message ${turn.seq}`;
    const thumb = (rating, label) => button(drawThumb(rating), () => this.rate(entry, rating), { class: "quiet", "aria-label": `${label}: ${name}`, title: label, "aria-pressed": String(entry.feedback === rating), "data-key": `${entry.key}:${rating}` });
    return h("div", { class: "meta" },
      h("a", { href: linkOf(turn), title: "What happened in this turn" }, `#${turn.seq}`),
      turn.duration_ms === null ? null : h("span", {}, showDuration(turn.duration_ms)),
      turn.epoch === undefined || turn.epoch === null ? null : button(`Version ${turn.epoch}`, () => this.page.showEpoch(turn.epoch), { class: "quiet", "aria-label": `Show the state after ${name}`, "data-key": `${entry.key}:epoch` }),
      thumb("up", "Good answer"),
      thumb("down", "Bad answer"));
  }

  async rate(entry, rating) {
    const sent = await this.page.attempt(() => this.session.api.feedback(entry.turnId, { rating }));
    if (sent === undefined) return;
    entry.feedback = rating;
    this.renewOne(entry);
    this.page.notify("Thank you. Your rating is stored with the turn.");
  }

  /** Announce the complete answer to screen readers. */
  speak(entry) {
    byId("spoken").textContent = toPlain(entry.turn.reply ?? "");
  }

  mark(epoch) {
    for (const entry of this.entries) {
      this.shown.get(entry.key)?.element.classList.toggle("shown-epoch", epoch !== null && entry.turn?.epoch === epoch);
    }
  }

  isAtEnd() {
    const { scrollTop, scrollHeight, clientHeight } = this.scroller;
    return scrollHeight - scrollTop - clientHeight < NEAR_END;
  }

  goToEnd() {
    this.scroller.scrollTop = this.scroller.scrollHeight;
    this.stays = true;
    this.offerEnd();
  }

  offerEnd() {
    byId("to-end").hidden = this.isAtEnd();
  }
}

/** Return a frame page's rows. The page is an array of rows, or an object with such an array. */
function rowsOf(page) {
  if (Array.isArray(page)) return page;
  return page.rows ?? page.data ?? page.items ?? [];
}
