// A form requested by a flow, which is submitted as one action.

import { h } from "./dom.js";
import { humanize } from "./words.js";

const INPUT_TYPES = { date: "date", time: "time", number: "number", level: "number", money: "number", email: "email" };

function makeControl(field, id) {
  const options = field.options ?? field.values ?? field.choices;
  const given = { id, name: field.name, required: Boolean(field.required), "aria-describedby": `${id}-problem` };
  if (Array.isArray(options) && options.length > 0) {
    const shown = options.map((one) => (one !== null && typeof one === "object" ? one : { value: one, label: String(one) }));
    const select = h("select", given, h("option", { value: "" }, "Choose"), shown.map((one) => h("option", { value: JSON.stringify(one.value) }, one.label ?? String(one.value))));
    select.value = field.value === undefined || field.value === null ? "" : JSON.stringify(field.value);
    return { control: select, read: () => (select.value === "" ? null : JSON.parse(select.value)) };
  }
  const kind = field.type ?? field.kind ?? "text";
  if (kind === "boolean") {
    const box = h("input", { ...given, required: false, type: "checkbox", checked: field.value === true });
    return { control: box, read: () => box.checked, check: true };
  }
  const type = INPUT_TYPES[kind] ?? "text";
  const input = h("input", { ...given, type, step: type === "number" ? "any" : null, min: field.minimum, max: field.maximum, value: field.value ?? "" });
  return { control: input, read: () => (input.value === "" ? null : type === "number" ? Number(input.value) : input.value) };
}

let made = 0;

/** Create the form. `act` receives the action, with the entered values by field name in its payload. */
export function showForm({ fields, submit, title, act, current }) {
  made += 1;
  const controls = fields.map((field, at) => ({ field, ...makeControl(field, `form-${made}-${at}`) }));
  const labels = controls.map(({ field, control, check }) => {
    const text = field.label ?? humanize(field.name);
    const words = [field.prompt || humanize(text), field.required ? "" : " (optional)"];
    const problem = h("span", { class: "problem", id: `${control.id}-problem` }, field.problem ?? "");
    return h("label", { class: check ? "check" : null }, check ? [control, words] : [h("span", {}, words), control], problem);
  });
  const send = (event) => {
    event.preventDefault();
    const values = Object.fromEntries(controls.map(({ field, read }) => [field.name, read()]).filter(([, value]) => value !== null));
    act({ ...submit, payload: { ...submit.payload, values } });
  };
  return h("form", { class: "fields", "aria-label": title, on: { submit: send } },
    labels,
    submit ? h("div", { class: "row-buttons" }, h("button", { type: "submit", class: "primary", disabled: !current }, submit.label ?? "Send")) : null);
}
