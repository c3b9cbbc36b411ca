// The documents available to the session, and a search in them.

import { button, h } from "../dom.js";
import { showTime } from "../words.js";
import { chip, fold, nothing, section } from "./common.js";

export const id = "documents";
export const label = "Documents";

const search = { session: null, words: "", found: null };

export async function load({ session }) {
  if (search.session !== session.id) Object.assign(search, { session: session.id, words: "", found: null });
  return session.api.documents(session.record);
}

export function render({ data, session, page, redraw }) {
  const find = async () => {
    const { words } = search;
    const found = words.trim() === "" ? null : await page.attempt(() => session.api.searchDocuments(session.record, words));
    if (search.session === session.id) search.found = found ?? null; // unless another session was opened during the request
    redraw();
  };
  const box = h("input", { type: "search", "aria-label": "Search the documents", placeholder: "Search the documents", value: search.words, "data-key": "documents:words", on: {
    input: (event) => { search.words = event.target.value; },
    keydown: (event) => event.key === "Enter" && find(),
  } });
  return [
    h("div", { class: "filter" }, box, button("Find", find, { "data-key": "documents:find" })),
    search.found === null ? null : section("Found", search.found.length ? h("ol", { class: "entries" }, search.found.map(showPassage)) : nothing("No passages found.")),
    section("Documents", data.length ? h("ul", { class: "entries" }, data.map(showDocument)) : nothing("There are no documents for this domain. Upload them with POST /v1/documents or `parley documents add`.")),
  ];
}

function showPassage(passage) {
  return h("li", { class: "entry" },
    h("header", {}, h("h4", {}, passage.title || "Untitled"), h("span", { class: "when" }, passage.score.toFixed(2))),
    h("p", {}, passage.text),
    passage.labels.length ? h("p", { class: "quote" }, passage.labels.join(", ")) : null);
}

function showDocument(one) {
  const about = [one.domain || "all domains", one.user_id ? `for ${one.user_id}` : "for all users", `${one.characters} characters`, `${one.chunks} passages`, ...one.labels];
  return h("li", { class: "entry" },
    h("header", {}, h("h4", {}, one.title || one.document_id), chip(one.status, one.status === "embedded" ? "done" : "waiting"), h("span", { class: "when" }, showTime(one.updated_at))),
    h("p", { class: "quote" }, about.join(" · ")),
    Object.keys(one.origin).length ? fold("Origin", one.origin, `document:${one.document_id}`) : null);
}
