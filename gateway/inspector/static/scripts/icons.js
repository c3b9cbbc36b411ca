import { s } from "./dom.js";

const PATHS = {
  sun: ["M12 4V2M12 22v-2M4 12H2M22 12h-2M6.3 6.3 4.9 4.9M19.1 19.1l-1.4-1.4M6.3 17.7l-1.4 1.4M19.1 4.9l-1.4 1.4", "M12 16a4 4 0 1 0 0-8 4 4 0 0 0 0 8z"],
  moon: ["M20 14.5A8.5 8.5 0 0 1 9.5 4a8.5 8.5 0 1 0 10.5 10.5z"],
  up: ["M4 11h4v9H4zM8 11l4-8c1.6 0 2.6 1.2 2.3 2.8L13.7 9H19a2 2 0 0 1 2 2.4l-1.3 7A2 2 0 0 1 17.700 20H8"],
  down: ["M20 13h-4V4h4zM16 13l-4 8c-1.600 0-2.600-1.200-2.300-2.800l.6-3.200H5a2 2 0 0 1-2-2.400l1.300-7A2 2 0 0 1 6.300 4H16"],
};

export function drawIcon(name, size = 16) {
  const look = { fill: "none", stroke: "currentColor", "stroke-width": "2", "stroke-linecap": "round", "stroke-linejoin": "round" };
  return s("svg", { viewBox: "0 0 24 24", width: size, height: size, "aria-hidden": "true", ...look }, PATHS[name].map((d) => s("path", { d })));
}

export const drawThumb = (rating) => drawIcon(rating, 14);
