// Format IDs, values and times for display.

export function humanize(name) {
  const words = String(name).replaceAll("_", " ").replaceAll("-", " ").trim();
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** Format a value in one line. */
export function showValue(value) {
  if (value === null || value === undefined) return "–";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "number") return showNumber(value);
  if (typeof value === "object") return JSON.stringify(value);
  return String(value);
}

const plainNumber = new Intl.NumberFormat("en", { maximumFractionDigits: 6 });

export function showNumber(value) {
  return Number.isInteger(value) && Math.abs(value) < 10000 ? String(value) : plainNumber.format(value);
}

const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });

function toDate(time) {
  if (time === null || time === undefined || time === "") return null;
  const date = typeof time === "number" ? new Date(time * 1000) : new Date(time);
  return Number.isNaN(date.getTime()) ? null : date;
}

/** Format ISO 8601 or Unix seconds as a time of day, with the date if it isn't today. */
export function showTime(time) {
  const date = toDate(time);
  if (date === null) return "";
  const today = date.toDateString() === new Date().toDateString();
  return (today ? clock : day).format(date);
}

/** Format the approximate age of a time. */
export function showAge(time) {
  const date = toDate(time);
  if (date === null) return "";
  const seconds = Math.max(0, (Date.now() - date.getTime()) / 1000);
  if (seconds < 45) return "just now";
  if (seconds < 3600) return `${Math.max(1, Math.round(seconds / 60))} min ago`;
  if (seconds < 86400) return `${Math.round(seconds / 3600)} h ago`;
  return `${Math.round(seconds / 86400)} d ago`;
}

export function showDuration(milliseconds) {
  if (milliseconds === null || milliseconds === undefined) return "";
  return milliseconds < 1000 ? `${Math.max(1, Math.round(milliseconds))} ms` : `${(milliseconds / 1000).toFixed(1)} s`;
}

/** Format millionths of a US dollar. */
export function showCost(micros) {
  return `US$${(micros / 1_000_000).toFixed(6)}`;
}

const TONES = {
  Active: "accent", Completed: "good", Invalid: "bad", Pending: "warn",
  done: "good", running: "accent", ready: "warn", waiting: "warn", queued: "warn", skipped: "",
  failed: "bad", cancelled: "bad", blocked: "bad", rejected: "bad", quarantined: "bad", unknown: "bad",
  pending: "warn", awaited: "warn", granted: "good", used: "good", denied: "bad", expired: "bad", ok: "good", error: "bad", finished: "good",
  started: "accent", open: "accent", closed: "",
};

export function toneOf(status) {
  return TONES[status] ?? "";
}
