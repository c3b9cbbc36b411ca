// Draw Vega-Lite specifications. Expressions are interpreted, not compiled, and no other hosts are contacted.

import { h } from "./dom.js";
import { CHART_LIBRARY } from "./trusted.js";

let library = null;

/** Return a promise of the chart library, which is loaded for the first chart. */
function loadLibrary() {
  library ??= new Promise((resolve, reject) => {
    const script = h("script", { src: CHART_LIBRARY });
    script.addEventListener("load", () => resolve(window.vegaEmbed));
    script.addEventListener("error", () => {
      library = null;
      reject(new Error("The chart library could not be loaded."));
    });
    document.head.append(script);
  });
  return library;
}

const REFUSED = {
  load: () => Promise.reject(new Error("Charts can't load data.")),
  sanitize: () => Promise.reject(new Error("Charts can't contain links.")),
  http: () => Promise.reject(new Error("Charts can't load data.")),
  file: () => Promise.reject(new Error("Charts can't load files.")),
};

function colors() {
  const style = getComputedStyle(document.documentElement);
  const [text, muted, line, accent] = ["--text", "--muted", "--line", "--accent"].map((name) => style.getPropertyValue(name).trim());
  const font = style.getPropertyValue("--sans").trim();
  return {
    background: "transparent",
    font,
    title: { color: text, fontSize: 14, fontWeight: 600, anchor: "start", offset: 12 },
    axis: { labelColor: muted, titleColor: muted, gridColor: line, domainColor: line, tickColor: line, labelFontSize: 12, titleFontSize: 12, titleFontWeight: 500 },
    legend: { labelColor: muted, titleColor: muted, labelFontSize: 12, titleFontSize: 12 },
    view: { stroke: "transparent" },
    mark: { color: accent },
    bar: { color: accent, cornerRadiusEnd: 3 },
    line: { color: accent, strokeWidth: 2.2 },
    point: { color: accent, filled: true, opacity: 0.75 },
    range: { category: [accent, "#c2762a", "#5c74c9", "#b8527a", "#6f8f3a", "#8a63b8", "#4b93b0", "#a3604a"] },
  };
}

/** Keep category labels horizontal if they are few and short. */
function turnLabels(rows) {
  const names = Object.values(rows[0] ?? {}).map((value, at) => (typeof value === "string" ? new Set(rows.map((row) => String(Object.values(row)[at]))) : null));
  const categories = names.find((one) => one !== null && one.size > 1);
  const upright = categories !== undefined && categories.size <= 8 && Math.max(...[...categories].map((name) => name.length)) <= 12;
  return upright ? { axisXDiscrete: { labelAngle: 0 } } : {};
}

const tooltip = (handler, event, item, value) => {
  const root = document.getElementById("toasts").parentElement;
  let box = document.getElementById("chart-tooltip");
  if (value === null || value === undefined || value === "") return void box?.remove();
  box ??= root.appendChild(h("div", { id: "chart-tooltip", class: "chart-tooltip", "aria-hidden": "true" }));
  const lines = typeof value === "object" ? Object.entries(value).map(([name, one]) => `${name}: ${one}`) : [String(value)];
  box.replaceChildren(...lines.map((line) => h("div", {}, line)));
  box.style.left = `${Math.min(event.clientX + 12, window.innerWidth - box.offsetWidth - 8)}px`;
  box.style.top = `${event.clientY + 14}px`;
  return undefined;
};

/** Draw `spec` into `place`. Resolves after drawing, and rejects with a reason on failure. */
export async function drawChart(place, spec, label) {
  const embed = await loadLibrary();
  const sized = { ...spec, width: spec.width ?? "container", autosize: spec.autosize ?? { type: "fit-x", contains: "padding" } };
  const drawn = await embed(place, sized, {
    ast: true,
    actions: false,
    defaultStyle: false,
    renderer: "svg",
    mode: "vega-lite",
    loader: REFUSED,
    tooltip,
    config: { ...colors(), ...turnLabels(Array.isArray(spec.data?.values) ? spec.data.values : []) },
  });
  place.querySelector("svg")?.setAttribute("aria-hidden", "true"); // the data is available as a table
  place.setAttribute("role", "img");
  place.setAttribute("aria-label", label);
  place.removeAttribute("aria-roledescription");
  return drawn;
}
