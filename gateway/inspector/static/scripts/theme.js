// Light and dark themes. Default: the system's setting.

import { byId } from "./dom.js";
import { drawIcon } from "./icons.js";

const STORED = "parley.theme";
const dark = window.matchMedia("(prefers-color-scheme: dark)");
const listeners = [];

function isDark() {
  const chosen = localStorage.getItem(STORED);
  return chosen === null ? dark.matches : chosen === "dark";
}

function apply() {
  document.documentElement.dataset.theme = isDark() ? "dark" : "light";
  byId("toggle-theme").replaceChildren(drawIcon(isDark() ? "sun" : "moon"));
  for (const listener of listeners) listener();
}

export function toggleTheme() {
  localStorage.setItem(STORED, isDark() ? "light" : "dark");
  apply();
}

/** Apply the theme. `onChange` is called when colors change. */
export function startTheme(onChange) {
  apply();
  listeners.push(onChange);
  dark.addEventListener("change", apply);
  byId("toggle-theme").addEventListener("click", toggleTheme);
}
