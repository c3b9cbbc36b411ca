// Create elements. Text becomes a text node and is never parsed as markup.

const SVG = "http://www.w3.org/2000/svg";
const SAFE_ADDRESS = /^(https?:|mailto:|#|\/(?!\/))/i;

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    } else if (name === "style") {
      for (const [key, one] of Object.entries(value)) element.style.setProperty(key, one);
    } else if (name === "value" || name === "checked" || name === "selected") {
      element[name] = value;
    } else if (name.toLowerCase().startsWith("on") || name === "srcdoc") {
      throw new TypeError(`${name} is not set from here`);
    } else if (name === "href" && !SAFE_ADDRESS.test(String(value))) {
      continue;
    } else {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false || child === "") continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/** Create an HTML element: `h("p", {class: "quote"}, "text", another)`. */
export function h(tag, properties = {}, ...children) {
  return fill(document.createElement(tag), properties, children);
}

export function s(tag, properties = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), properties, children);
}

export const byId = (id) => document.getElementById(id);

/** Create a button that does not submit a form. */
export function button(label, onClick, properties = {}) {
  return h("button", { type: "button", ...properties, on: { click: onClick } }, label);
}

/**
 * Replace the children of `root`. A new element takes over the focus, input, open details and scroll position of
 * the old element with the same `data-key`.
 */
export function replace(root, ...children) {
  const focused = root.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
  const opened = new Map();
  const scrolled = new Map();
  const written = new Map();
  for (const one of root.querySelectorAll("[data-key]")) {
    if (one.tagName === "DETAILS") opened.set(one.dataset.key, one.open);
    if (one.scrollTop) scrolled.set(one.dataset.key, one.scrollTop);
    if (one.matches("input[type=text], textarea")) written.set(one.dataset.key, one.value);
  }
  const fresh = document.createDocumentFragment();
  append(fresh, children);
  root.replaceChildren(fresh);
  for (const one of root.querySelectorAll("[data-key]")) {
    const key = one.dataset.key;
    if (one.tagName === "DETAILS" && opened.has(key)) one.open = opened.get(key);
    if (scrolled.has(key)) one.scrollTop = scrolled.get(key);
    if (written.has(key)) one.value = written.get(key);
    if (focused !== undefined && key === focused) one.focus({ preventScroll: true });
  }
}

/** Let arrow keys move the focus within `root`. Only one of its `selector` elements is in the tab order. */
export function rove(root, selector, { vertical = false, onMove = () => {} } = {}) {
  const [back, on] = vertical ? ["ArrowUp", "ArrowDown"] : ["ArrowLeft", "ArrowRight"];
  root.addEventListener("keydown", (event) => {
    const all = [...root.querySelectorAll(selector)].filter((one) => one.offsetParent !== null);
    const at = all.indexOf(document.activeElement);
    if (at < 0) return;
    const last = all.length - 1;
    const places = { [back]: at === 0 ? last : at - 1, [on]: at === last ? 0 : at + 1, Home: 0, End: last };
    if (!(event.key in places)) return;
    event.preventDefault();
    const next = all[places[event.key]];
    for (const one of all) one.tabIndex = one === next ? 0 : -1;
    next.focus();
    onMove(next);
  });
}
