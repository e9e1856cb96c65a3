// Talk to a running server with the protocol's own client, which verifies the order and the form of every event.
// The steps come as JSON on standard input; what the client holds after each of them goes to standard output.
import { HttpAgent, verifyEvents } from "@ag-ui/client";
import { readFileSync } from "node:fs";

const { url, key, thread, steps } = JSON.parse(readFileSync(0, "utf8"));
const agent = new HttpAgent({ url, threadId: thread, headers: { authorization: `Bearer ${key}` } });
const seen = [];
for (const step of steps) {
  const events = [];
  if (step.messages) agent.setMessages(step.messages);
  if (step.state) agent.setState(step.state);
  if (step.say) agent.addMessage({ id: `user-${seen.length}`, role: "user", content: step.say });
  if (step.result) agent.addMessage({ id: `tool-${seen.length}`, role: "tool", ...step.result });
  const given = { ...(step.run ?? {}) };
  if (step.answer) {
    given.resume = agent.pendingInterrupts.map((each) => ({ interruptId: each.id, status: "resolved", payload: step.answer }));
  }
  let error = null;
  try {
    await agent.runAgent(given, { onEvent: ({ event }) => { events.push(event.type); } });
  } catch (problem) {
    error = String(problem);
  }
  seen.push({
    events,
    error,
    messages: structuredClone(agent.messages),
    state: structuredClone(agent.state),
    interrupts: structuredClone(agent.pendingInterrupts),
  });
}
if (steps.length === 0) {
  // The raw stream, judged by the verifier alone.
  const input = { threadId: thread, runId: "raw", messages: [{ id: "1", role: "user", content: "Hi" }], tools: [], context: [], state: {}, forwardedProps: {} };
  await new Promise((resolve, reject) => {
    agent.run(input).pipe(verifyEvents()).subscribe({ next: (event) => seen.push(event), error: reject, complete: resolve });
  });
}
process.stdout.write(JSON.stringify(seen));
