// Tables with pages that are loaded on demand.

import { button, h } from "./dom.js";
import { humanize, showValue } from "./words.js";

const LONGEST_CELL = 400;
const SHORT_CELL = 30;
const SHOWN_AT_ONCE = 25;

function columnsOf(rows, named) {
  if (named?.length) return named.map((one) => ({ ...one, label: humanize(one.label ?? one.name) }));
  const names = [...new Set(rows.slice(0, 50).flatMap((row) => Object.keys(row)))];
  return names.map((name) => ({
    name,
    label: humanize(name),
    type: rows.every((row) => row[name] === null || row[name] === undefined || typeof row[name] === "number") ? "number" : "text",
  }));
}

function showRow(row, columns) {
  return h("tr", {}, columns.map(({ name, type }) => {
    const text = showValue(row[name]);
    const short = text.length > LONGEST_CELL ? `${text.slice(0, LONGEST_CELL)}…` : text;
    return h("td", { class: type === "number" ? "number" : text.length <= SHORT_CELL ? "short" : null }, short);
  }));
}

export function showRows(rows, named, caption) {
  const columns = columnsOf(rows, named);
  return h("div", { class: "table-scroll", tabindex: "0", role: "region", "aria-label": caption },
    h("table", {},
      h("caption", { class: "unseen" }, caption),
      h("thead", {}, h("tr", {}, columns.map(({ label, type }) => h("th", { scope: "col", class: type === "number" ? "number" : null }, label)))),
      h("tbody", {}, rows.map((row) => showRow(row, columns)))));
}

/**
 * Create a table with pages. `readPage(number)` returns the rows of a stored page. A page is shown in parts, so
 * that hundreds of rows don't bury the conversation.
 */
export function showTable({ rows, block, title, readPage }) {
  const root = h("div", {});
  const total = block.rows ?? rows.length;
  const perPage = block.page_rows ?? Math.max(rows.length, 1);
  const given = (block.page ?? 1) - 1;
  const stored = new Map([[given, rows]]);
  const reachable = readPage ? total : rows.length;
  let first = 0;

  const show = async (start) => {
    const page = Math.floor(start / perPage);
    if (!stored.has(page)) {
      try {
        stored.set(page, await readPage(page + 1));
      } catch (problem) {
        if (problem.status === undefined) throw problem;
        status.textContent = problem.message;
        return;
      }
    }
    first = start;
    const offset = start - page * perPage;
    const part = stored.get(page).slice(offset, offset + SHOWN_AT_ONCE);
    place.replaceChildren(showRows(part, columns, title));
    const end = first + part.length;
    status.textContent = total === 0 ? "No rows" : `Rows ${first + 1}–${end} of ${showValue(total)}`;
    back.disabled = first === 0;
    on.disabled = end >= reachable;
    next = end;
  };

  const columns = columnsOf(rows, block.columns);
  const place = h("div", {});
  const status = h("p", { role: "status" });
  let next = 0;
  const back = button("Previous page", () => show(previousOf(first, perPage)), { "data-key": `${title}:back` });
  const on = button("Next page", () => show(next), { "data-key": `${title}:on` });
  const pager = h("div", { class: "pager" }, status, reachable > SHOWN_AT_ONCE ? [back, on] : []);
  root.append(place, pager);
  show(given * perPage);
  return root;
}

/** Return the first row of the previous part. Parts never cross the end of a stored page. */
function previousOf(first, perPage) {
  const page = Math.floor(first / perPage);
  const offset = first - page * perPage;
  if (offset > 0) return page * perPage + Math.max(0, offset - SHOWN_AT_ONCE);
  const lastPart = Math.floor((perPage - 1) / SHOWN_AT_ONCE) * SHOWN_AT_ONCE;
  return Math.max(0, (page - 1) * perPage + lastPart);
}
