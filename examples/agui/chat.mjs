// An AG-UI client of Parley, with streamed text, tool calls, and an approval as an interrupt.
//
// Start `parley up` in one terminal, then in another:
//
//     cd examples/agui && npm install && node chat.mjs

import { HttpAgent } from "@ag-ui/client";

const url = process.argv[2] ?? "http://127.0.0.1:8600";
const agent = new HttpAgent({ url: `${url}/v1/agui`, threadId: crypto.randomUUID() });

let interrupts = [];
const shown = {
  onToolCallEndEvent: ({ toolCallName, toolCallArgs }) => console.log(`tool:   ${toolCallName} ${JSON.stringify(toolCallArgs)}`),
  onTextMessageEndEvent: ({ textMessageBuffer }) => console.log(`parley: ${textMessageBuffer}\n`),
  onRunErrorEvent: ({ event }) => console.log(`error:  ${event.message}`),
  onRunFinishedEvent: ({ event }) => { interrupts = event.outcome?.type === "interrupt" ? event.outcome.interrupts : []; },
};

async function say(text) {
  console.log(`you:    ${text}`);
  agent.addMessage({ id: crypto.randomUUID(), role: "user", content: text });
  await agent.runAgent({ forwardedProps: { domain: "travel" } }, shown);
}

const day = new Date(Date.now() + 20 * 86400e3).toISOString().slice(0, 10);
await say(`Book a flight from Oslo to Sydney on ${day} for 8 people`);
console.log(`state:  ${agent.state.flows.map((flow) => flow.dact)}\n`);
await say("yes");

for (const { id, message } of interrupts) console.log(`approve ${id.slice(0, 8)}…? ${message}\nyou:    (click on Approve)`);
const resume = interrupts.map(({ id }) => ({ interruptId: id, status: "resolved", payload: { approved: true } }));
await agent.runAgent({ resume }, shown);
console.log(`done:   ${agent.state.completed}`);
