// Reads the event stream of a session as so many tabs, in one process: node web-readers.mjs <origin> <headers> <session> <count>
const [origin, headers, sessionId, count] = process.argv.slice(2);

for (let tab = 0; tab < Number(count); tab++) void follow();

async function follow() {
  const response = await fetch(`${origin}/events?session=${sessionId}`, { headers: JSON.parse(headers) });
  if (!response.ok) throw new Error(`The stream answered ${response.status}.`);
  for await (const _ of response.body);
}

process.on("disconnect", () => process.exit(0));
