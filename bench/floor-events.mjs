// The floor of `events`: frames of the same form at the same rate, written to stdout with the moment they were made.
const [count, rate] = process.argv.slice(2).map(Number);
const from = now();
let sent = 0;

const ticking = setInterval(() => {
  for (; sent < count && now() - from >= (sent * 1000) / rate; sent++) process.stdout.write(frame());
  if (sent === count) clearInterval(ticking);
}, 1);

function frame() {
  const emitted = String(process.hrtime.bigint()).padStart(18, "0");
  const event = {
    type: "assistant.message_delta",
    timestamp: `T.000${emitted}Z`,
    data: { deltaContent: "x".repeat(60) },
  };
  const body = JSON.stringify({ jsonrpc: "2.0", method: "session.event", params: { sessionId: "floor", event } });
  return `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

function now() {
  return Number(process.hrtime.bigint()) / 1e6;
}
