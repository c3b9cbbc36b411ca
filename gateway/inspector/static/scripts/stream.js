// Follow a session's events over fetch, which can send an API key, and resume after an interruption.

import { readProblem } from "./api.js";

const FIRST_PAUSE_MS = 300;
const LONGEST_PAUSE_MS = 8000;

/** A parser of `text/event-stream` that is fed with chunks of text. */
export class EventReader {
  constructor(onEvent) {
    this.onEvent = onEvent;
    this.rest = "";
    this.clear();
  }

  clear() {
    this.data = [];
    this.type = "";
    this.id = undefined;
  }

  feed(text) {
    const lines = (this.rest + text).split(/\r\n|\n|\r(?!$)/);
    this.rest = lines.pop();
    for (const line of lines) this.readLine(line);
  }

  readLine(line) {
    if (line === "") {
      if (this.data.length > 0) this.onEvent({ id: this.id, type: this.type, data: this.data.join("\n") });
      this.clear();
      return;
    }
    if (line.startsWith(":")) return;
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "data") this.data.push(value);
    else if (field === "event") this.type = value;
    else if (field === "id") this.id = value;
  }
}

/**
 * Follow a session's events, starting after number `last`. Return a function that stops.
 * `onStatus` receives "on", "waiting" (for the next attempt) or "off" (after a permanent error).
 */
export function follow(api, sessionId, last, onEvent, onStatus) {
  const stop = new AbortController();
  run(api, sessionId, last, onEvent, onStatus, stop.signal);
  return () => stop.abort();
}

/** Return all stored events of a session. */
export async function readLog(api, sessionId) {
  const response = await api.request(`/v1/sessions/${encodeURIComponent(sessionId)}/events?follow=false`);
  if (!response.ok) throw await readProblem(response);
  const events = [];
  await read(response, new AbortController().signal, (event) => events.push(event));
  return events;
}

async function run(api, sessionId, last, onEvent, onStatus, signal) {
  let pause = FIRST_PAUSE_MS;
  while (!signal.aborted) {
    try {
      const headers = { Accept: "text/event-stream", "Last-Event-ID": String(last) };
      const path = `/v1/sessions/${encodeURIComponent(sessionId)}/events`;
      const response = await api.request(path, { headers, signal });
      if ([401, 403, 404, 422].includes(response.status)) return onStatus("off");
      if (response.ok) {
        onStatus("on");
        pause = FIRST_PAUSE_MS;
        await read(response, signal, (event) => {
          if (typeof event.number === "number") last = event.number;
          onEvent(event);
        });
      }
    } catch (error) {
      if (signal.aborted) return undefined;
      if (!(error instanceof TypeError)) throw error; // any other error is a bug
    }
    if (signal.aborted) return undefined;
    onStatus("waiting");
    await wait(pause * (0.7 + Math.random() * 0.6), signal);
    pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
  }
  return undefined;
}

async function read(response, signal, onEvent) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  const events = new EventReader((raw) => {
    const event = JSON.parse(raw.data);
    const number = event.number ?? (/^\d+$/.test(raw.id ?? "") ? Number(raw.id) : null);
    onEvent({ payload: {}, ...event, type: event.type ?? raw.type, number });
  });
  while (!signal.aborted) {
    const { done, value } = await reader.read();
    if (done) return;
    events.feed(value);
  }
}

function wait(milliseconds, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    }, { once: true });
  });
}
