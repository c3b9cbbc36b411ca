// A client of the gateway that handles the API key and problem documents. It doesn't depend on the page.

const STORED_KEY = "parley.key";

export class Problem extends Error {
  constructor(status, code, detail, field) {
    super(detail);
    this.status = status;
    this.code = code;
    this.field = field;
  }
}

/** Create a random ID. `crypto.randomUUID` is unavailable over plain HTTP. */
export function makeKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

const seg = encodeURIComponent;

export class Api {
  /** `askForKey` is called when the gateway requires a key. It returns the user's key, or null. */
  constructor(askForKey) {
    this.askForKey = askForKey;
    this.asking = null;
    this.key = sessionStorage.getItem(STORED_KEY);
  }

  setKey(key) {
    this.key = key || null;
    if (this.key === null) sessionStorage.removeItem(STORED_KEY);
    else sessionStorage.setItem(STORED_KEY, this.key);
  }

  /** Return the gateway's response. On 401, ask the user for a key and retry, unless the user cancels. */
  async request(path, options = {}) {
    for (;;) {
      const tried = this.key;
      const response = await fetch(path, { ...options, headers: this.headers(options.headers), cache: "no-store" });
      if (response.status !== 401) return response;
      if (this.key === tried && !(await this.obtainKey(tried !== null))) return response;
    }
  }

  headers(more = {}) {
    return this.key === null ? more : { ...more, Authorization: `Bearer ${this.key}` };
  }

  /** Ask for a key. Concurrent calls share one dialog. */
  async obtainKey(refused) {
    this.asking ??= this.askForKey(refused).finally(() => {
      this.asking = null;
    });
    const key = await this.asking;
    if (key) this.setKey(key);
    return Boolean(key);
  }

  async call(method, path, body, headers = {}) {
    const options = { method, headers: { Accept: "application/json", ...headers } };
    if (body !== undefined) {
      options.headers["Content-Type"] = "application/json";
      options.body = JSON.stringify(body);
    }
    let response;
    try {
      response = await this.request(path, options);
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      throw new Problem(0, "unreachable", "The gateway can't be reached.");
    }
    if (!response.ok) throw await readProblem(response);
    return response.status === 204 ? null : response.json();
  }

  get(path) {
    return this.call("GET", path);
  }

  post(path, body, headers) {
    return this.call("POST", path, body, headers);
  }

  facts() {
    return this.get("/v1/inspector");
  }
  sessions() {
    return this.get("/v1/sessions?limit=200");
  }
  createSession(body) {
    return this.post("/v1/sessions", body);
  }
  session(id) {
    return this.get(`/v1/sessions/${seg(id)}`);
  }
  closeSession(id) {
    return this.call("DELETE", `/v1/sessions/${seg(id)}`);
  }
  history(id, limit) {
    return this.get(`/v1/sessions/${seg(id)}/history?limit=${limit}`);
  }
  turns(id) {
    return this.get(`/v1/sessions/${seg(id)}/turns?limit=500`);
  }
  searchTurns(query) {
    return this.get(`/v1/turns/search?${query}`);
  }
  turnsByUser() {
    return this.get("/v1/turns/users");
  }
  turnsByDay(days) {
    return this.get(`/v1/turns/days?days=${days}`);
  }
  turn(turnId, waitS = 0) {
    return this.get(`/v1/turns/${seg(turnId)}${waitS ? `?wait=${waitS}` : ""}`);
  }
  submit(id, input, key) {
    return this.post(`/v1/sessions/${seg(id)}/turns`, input, { "Idempotency-Key": key });
  }
  cancelTurn(turnId) {
    return this.post(`/v1/turns/${seg(turnId)}/cancel`);
  }
  ratings(id) {
    return this.get(`/v1/feedback?session_id=${seg(id)}&limit=1000`);
  }
  feedback(turnId, body) {
    return this.post(`/v1/turns/${seg(turnId)}/feedback`, body);
  }
  stateAt(id, epoch) {
    return this.get(`/v1/sessions/${seg(id)}/state?epoch=${epoch}`);
  }
  rollBack(id, epoch) {
    return this.post(`/v1/sessions/${seg(id)}/rollback`, { epoch });
  }
  branch(id, epoch, name) {
    return this.post(`/v1/sessions/${seg(id)}/branch`, { epoch, session_id: name });
  }
  compare(id, other) {
    return this.get(`/v1/sessions/${seg(id)}/compare?with=${seg(other)}`);
  }
  repairs(id) {
    return this.get(`/v1/sessions/${seg(id)}/repairs`);
  }
  previewRepairs(id, repairs) {
    return this.post(`/v1/sessions/${seg(id)}/repairs/preview`, { repairs });
  }
  repair(id, order) {
    return this.post(`/v1/sessions/${seg(id)}/repairs?wait=30`, order);
  }
  plan(id) {
    return this.get(`/v1/sessions/${seg(id)}/plan`);
  }
  effects(id) {
    return this.get(`/v1/sessions/${seg(id)}/effects?limit=1000`);
  }
  turnJournal(turnId) {
    return this.get(`/v1/turns/${seg(turnId)}/journal`);
  }
  turnCase(turnId) {
    return this.get(`/v1/turns/${seg(turnId)}/case`);
  }
  journal(id) {
    return this.get(`/v1/sessions/${seg(id)}/journal`);
  }
  scratchpad(id) {
    return this.get(`/v1/sessions/${seg(id)}/scratchpad`);
  }
  framePage(id, frameId, page) {
    return this.get(`/v1/sessions/${seg(id)}/frames/${seg(frameId)}/page/${page}`);
  }
  approvals(id) {
    return this.get(`/v1/approvals?session_id=${seg(id)}`);
  }
  decide(approvalId, decision, reason) {
    return this.post(`/v1/approvals/${seg(approvalId)}`, { decision, ...(reason ? { reason } : {}) });
  }
  documents(record) {
    return this.get(`/v1/documents?${whoseDocuments(record)}&limit=200`);
  }
  searchDocuments(record, words) {
    return this.get(`/v1/documents/search?${whoseDocuments(record)}&q=${seg(words)}`);
  }
  preferences(record) {
    return this.get(`/v1/users/${seg(record.user_id ?? `session:${record.root ?? record.session_id}`)}/preferences`);
  }
  flows(domain) {
    return this.get(`/v1/domains/${seg(domain)}/flows`);
  }
  evaluations(domain) {
    return this.get(`/v1/evaluations?domain=${seg(domain)}`);
  }
  evaluation(domain, run) {
    return this.get(`/v1/evaluations/${seg(domain)}/${seg(run)}`);
  }
  replays(domain) {
    return this.get(`/v1/replays?domain=${seg(domain)}`);
  }
  replayReport(domain, replay) {
    return this.get(`/v1/replays/${seg(domain)}/${seg(replay)}`);
  }
  runs(id) {
    return this.get(`/v1/runs?session_id=${seg(id)}&limit=200`);
  }
  runItems(runId) {
    return this.get(`/v1/runs/${seg(runId)}/items?limit=100`);
  }
  cancelRun(runId) {
    return this.post(`/v1/runs/${seg(runId)}/cancel`);
  }
  redoRun(runId) {
    return this.post(`/v1/runs/${seg(runId)}/redo`);
  }
}

function whoseDocuments(record) {
  return new URLSearchParams({ domain: record.domain, ...(record.user_id ? { user_id: record.user_id } : {}) });
}

/** Return an error with the problem document of a response. */
export async function readProblem(response) {
  const body = await response.json().catch(() => ({}));
  const detail = typeof body.detail === "string" ? body.detail : `The gateway returned status ${response.status}.`;
  return new Problem(response.status, body.code ?? "unknown", detail, body.field);
}
