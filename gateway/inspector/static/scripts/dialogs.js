// Dialogs: new session, API key, shortcuts, and confirmations of irreversible actions.

import { button, byId, h } from "./dom.js";

let count = 0;

/** Open a dialog. Return a promise of its result, or of null if the user dismisses the dialog. */
function openDialog(title, make) {
  count += 1;
  const titleId = `dialog-${count}`;
  return new Promise((resolve) => {
    let result = null;
    const dialog = h("dialog", { "aria-labelledby": titleId });
    const close = (value) => {
      result = value;
      dialog.close();
    };
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(result);
    });
    dialog.append(make(h("h2", { id: titleId }, title), close));
    byId("dialogs").append(dialog);
    dialog.showModal();
  });
}

function form(close, read, ...children) {
  const submit = (event) => {
    event.preventDefault();
    close(read(event.currentTarget));
  };
  const takeKey = (event) => {
    if (event.key !== "Enter" || event.target.tagName !== "SELECT") return;
    event.preventDefault(); // submit the form on Enter in lists too
    event.currentTarget.requestSubmit();
  };
  return h("form", { on: { submit, keydown: takeKey } }, children);
}

function buttons(close, label, tone = "primary") {
  return h("div", { class: "buttons" }, button("Cancel", () => close(null)), h("button", { type: "submit", class: tone }, label));
}

export function askForSession(facts) {
  const options = facts.domains.map((name) => h("option", { value: name, selected: name === facts.default_domain }, name));
  const read = (target) => ({ domain: target.elements.domain.value, user_id: target.elements.user.value.trim() || undefined });
  return openDialog("New session", (title, close) => form(close, read, title,
    h("label", {}, "Domain", h("select", { name: "domain", autofocus: true }, options)),
    h("label", {}, "User (optional)", h("input", { name: "user", type: "text", maxlength: "128", pattern: "[A-Za-z0-9][A-Za-z0-9._:@\\-]*", title: "Letters, digits and . _ : @ -" })),
    buttons(close, "Start")));
}

export function askForKey(refused) {
  return openDialog("API key", (title, close) => form(close, (target) => target.elements.key.value.trim(), title,
    h("p", {}, refused ? "The gateway does not accept this key. Enter another key." : "This gateway requires a key. The key is kept until you close this tab."),
    h("label", {}, "Key", h("input", { name: "key", type: "password", autocomplete: "off", required: true, autofocus: true })),
    buttons(close, "Use this key")));
}

export function confirm(question, explanation, label) {
  return openDialog(question, (title, close) => form(close, () => true, title, h("p", {}, explanation), buttons(close, label, "danger")));
}

export function showHelp(shortcuts) {
  return openDialog("Keyboard shortcuts", (title, close) => h("div", { class: "body" }, title,
    h("dl", { class: "keys" }, shortcuts.map(({ keys, about }) => [h("dt", {}, keys.map((key) => h("kbd", {}, key))), h("dd", {}, about)])),
    h("p", {}, "Arrow keys move between sessions and between tabs. Single letters work when no text field has focus."),
    h("div", { class: "buttons" }, button("Close", () => close(null), { autofocus: true }))));
}

/** Show a notice for six seconds, or until the user closes it if its tone is "bad". */
export function notify(text, tone = "") {
  const toast = h("div", { class: `toast ${tone}` }, h("p", {}, text), button("×", () => toast.remove(), { class: "quiet small", "aria-label": "Close this notice" }));
  byId("toasts").append(toast);
  if (tone !== "bad") setTimeout(() => toast.remove(), 6000);
}
