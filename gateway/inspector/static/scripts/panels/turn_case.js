// A turn as a test case for `parley eval`, to copy or download.

import { button, h } from "../dom.js";
import { section } from "./common.js";

const made = { turnId: null, found: null };

/** Return a button that creates the case, or the created case, which survives a redraw of the panel. */
export function offerCase(turnId, api, page) {
  const make = button("Make a test case", async () => {
    const found = await page.attempt(() => api.turnCase(turnId));
    if (!found) return;
    Object.assign(made, { turnId, found });
    page.inspector.refresh("turn");
  }, { "data-key": `case:${turnId}` });
  const shown = made.turnId === turnId ? showCase(made.found) : null;
  return section("Test case", h("p", { class: "quote" }, "The conversation up to this turn, for parley eval."), make, h("div", { role: "status" }, shown));
}

function showCase({ name, yaml }) {
  const copy = button("Copy", async () => {
    await navigator.clipboard.writeText(yaml);
    copy.textContent = "Copied";
  }, { hidden: navigator.clipboard === undefined });
  return [
    h("p", {}, copy, " ", button(`Download ${name}`, () => download(name, yaml))),
    h("pre", { class: "json", tabindex: "0", role: "region", "aria-label": "Test case as YAML" }, yaml),
  ];
}

function download(name, text) {
  const link = h("a", { download: name });
  link.href = URL.createObjectURL(new Blob([text], { type: "application/yaml" }));
  link.click();
  URL.revokeObjectURL(link.href);
}
