// Clients of a session that read a little now and then, so that bytes for them wait in the server all the time.
import { connect } from "node:net";

export const SLOW_CLIENTS = 10;
/**
 * More than the buffers of the system take, so that what follows waits in the server; less than what makes the server
 * leave out the parts of messages, so that every event is written for each of them.
 */
const UNREAD_BYTES = 7 * 1024 * 1024;
const SIP_MS = 50;
const SIP_BYTES = 8 * 1024;

/** Resolves when they are behind. Leaving, they make sure that they were all the time. */
export async function slowClients(port, session) {
  const sockets = await Promise.all(
    Array.from({ length: SLOW_CLIENTS }, async () => {
      const socket = connect({ port, host: "127.0.0.1" });
      socket.on("error", () => {});
      await join(socket, session.sessionId);
      socket.pause();
      return socket;
    }),
  );
  for (let sent = 0; sent < UNREAD_BYTES; sent += 1024 * 1024) {
    await session.rpc.log({ message: "x".repeat(1024 * 1024), ephemeral: true });
  }
  const sipping = setInterval(() => {
    for (const socket of sockets) socket.read(SIP_BYTES);
  }, SIP_MS);
  return {
    leave() {
      clearInterval(sipping);
      const wrong = sockets.find(({ destroyed, bytesRead }) => destroyed || bytesRead > UNREAD_BYTES / 2);
      for (const socket of sockets) socket.destroy();
      if (wrong) throw new Error(`a slow client was not slow: it read ${wrong.bytesRead} bytes`);
    },
  };
}

async function join(socket, sessionId) {
  const answer = new Promise((resolve) => socket.once("data", resolve).once("close", resolve));
  socket.write(
    frameOf({ jsonrpc: "2.0", id: 1, method: "session.resume", params: { sessionId, disableResume: true } }),
  );
  const said = String(await answer);
  if (!said.includes(`"sessionId":"${sessionId}"`))
    throw new Error(`a slow client could not join: ${said.slice(0, 200)}`);
}

function frameOf(message) {
  const body = JSON.stringify(message);
  return `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}
