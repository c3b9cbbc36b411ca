// The message box. It grows with the text. Enter sends, and arrow up restores the last message.

import { byId } from "./dom.js";

const TALLEST = 180;

export class Composer {
  constructor(page) {
    this.page = page;
    this.box = byId("composer-text");
    this.button = byId("send");
    byId("composer").addEventListener("submit", (event) => {
      event.preventDefault();
      this.send(this.box.value);
    });
    this.box.addEventListener("input", () => this.fit());
    this.box.addEventListener("keydown", (event) => this.takeKey(event));
  }

  show(session) {
    this.box.value = "";
    this.fit();
    if (session !== null && window.matchMedia("(min-width: 960px)").matches) this.box.focus({ preventScroll: true });
  }

  allow(may) {
    this.may = may;
    this.box.disabled = !may;
    this.button.disabled = !may;
    this.box.placeholder = may || this.page.session === null ? "Write a message" : "This session is closed";
  }

  focus() {
    this.page.showPlace("chat");
    this.box.focus();
  }

  takeKey(event) {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      this.send(this.box.value);
    }
    if (event.key === "ArrowUp" && this.box.value === "") {
      const last = this.page.session?.entries.findLast((entry) => entry.action === null && entry.said);
      if (last === undefined) return;
      event.preventDefault();
      this.box.value = last.said;
      this.fit();
    }
  }

  fit() {
    this.box.style.height = "auto";
    this.box.style.height = `${Math.min(this.box.scrollHeight, TALLEST)}px`;
  }

  send(text) {
    if (!this.may || text.trim() === "") return;
    this.box.value = "";
    this.fit();
    this.page.showEpoch(null);
    this.page.session.submit({ text }, text);
    this.page.chat.goToEnd();
    this.box.focus();
  }
}
