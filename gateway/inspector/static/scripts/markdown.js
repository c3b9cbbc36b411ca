// Render a message: paragraphs, line breaks, lists and fenced code. Other markup is shown as text.

import { h } from "./dom.js";

const ESCAPED = /\\([\\`*_{}[\]()#+\-.!<>~|\d])/g;
const ITEM = /^(?:(?<bullet>[-*])|(?<number>\d{1,9})[.)])\s+(?<text>.*)$/;

export function unescape(text) {
  return text.replace(ESCAPED, "$1");
}

/** Return the elements that show a message. */
export function readMessage(message) {
  const elements = [];
  let run = null;
  const close = () => {
    if (run !== null) elements.push(makeRun(run));
    run = null;
  };
  let fence = null;
  for (const line of message.split("\n")) {
    if (/^```\w*\s*$/.test(line)) {
      if (fence === null) {
        close();
        fence = [];
      } else {
        elements.push(showCode(fence.join("\n")));
        fence = null;
      }
      continue;
    }
    if (fence !== null) {
      fence.push(line);
      continue;
    }
    if (line.trim() === "") {
      close();
      continue;
    }
    const item = ITEM.exec(line);
    const kind = item === null ? "text" : item.groups.bullet ? "ul" : "ol";
    if (run === null || run.kind !== kind) {
      close();
      run = { kind, first: Number(item?.groups.number ?? 1), lines: [] };
    }
    run.lines.push(unescape(item === null ? line : item.groups.text));
  }
  close();
  if (fence !== null) elements.push(showCode(fence.join("\n")));
  return elements;
}

function makeRun({ kind, first, lines }) {
  if (kind === "text") {
    return h("p", {}, lines.flatMap((line, at) => (at === 0 ? [line] : [h("br"), line])));
  }
  return h(kind, kind === "ol" ? { start: first } : {}, lines.map((line) => h("li", {}, line)));
}

export function showCode(code, language = "") {
  const name = language === "" ? "Code" : `Code in ${language}`;
  return h("pre", { class: "code", tabindex: "0", role: "region", "aria-label": name }, h("code", {}, code));
}

/** Return the message without markup, for screen readers. */
export function toPlain(message) {
  return unescape(message);
}
