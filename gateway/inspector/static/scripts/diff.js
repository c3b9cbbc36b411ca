// The differences between two states. Items with an ID are matched by ID.

const isObject = (value) => value !== null && typeof value === "object";

/** Return `[{path, before, after}]`. A value is undefined if its state does not have the path. */
export function findChanges(before, after, path = "") {
  if (Object.is(before, after)) return [];
  if (!isObject(before) || !isObject(after) || Array.isArray(before) !== Array.isArray(after)) return [{ path, before, after }];
  const [left, right] = [entriesOf(before), entriesOf(after)];
  const names = new Set([...left.keys(), ...right.keys()]);
  return [...names].flatMap((name) => findChanges(left.get(name), right.get(name), path === "" ? name : `${path} › ${name}`));
}

function entriesOf(value) {
  if (!Array.isArray(value)) return new Map(Object.entries(value));
  return new Map(value.map((one, at) => [nameOf(one) ?? String(at + 1), one]));
}

function nameOf(one) {
  if (!isObject(one) || Array.isArray(one)) return null;
  if (typeof one.flow_id === "string") return `${one.dact ?? "flow"} ${one.flow_id.slice(-6)}`;
  return one.approval_id ?? null;
}
