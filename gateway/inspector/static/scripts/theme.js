// Light and dark: as the system says, until the user chooses.

import { byId, s } from "./dom.js";

const STORED = "parley.theme";
const dark = window.matchMedia("(prefers-color-scheme: dark)");
const listeners = [];

const SUN = ["M12 4V2M12 22v-2M4 12H2M22 12h-2M6.3 6.3 4.9 4.9M19.1 19.1l-1.4-1.4M6.3 17.7l-1.4 1.4M19.1 4.9l-1.4 1.4", "M12 16a4 4 0 1 0 0-8 4 4 0 0 0 0 8z"];
const MOON = ["M20 14.5A8.5 8.5 0 0 1 9.5 4a8.5 8.5 0 1 0 10.5 10.5z"];

function isDark() {
  const chosen = localStorage.getItem(STORED);
  return chosen === null ? dark.matches : chosen === "dark";
}

function apply() {
  document.documentElement.dataset.theme = isDark() ? "dark" : "light";
  const paths = isDark() ? SUN : MOON;
  byId("toggle-theme").replaceChildren(s("svg", { viewBox: "0 0 24 24", width: "16", height: "16", fill: "none", stroke: "currentColor", "stroke-width": "2", "stroke-linecap": "round", "stroke-linejoin": "round", "aria-hidden": "true" }, paths.map((d) => s("path", { d }))));
  for (const listener of listeners) listener();
}

export function toggleTheme() {
  localStorage.setItem(STORED, isDark() ? "light" : "dark");
  apply();
}

/** `onChange` is called when colours have changed. */
export function startTheme(onChange) {
  apply();
  listeners.push(onChange);
  dark.addEventListener("change", apply);
  byId("toggle-theme").addEventListener("click", toggleTheme);
}
