import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** As much of GitHub as there is to ask: who has which token. */
export async function github(users: Record<string, object>) {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    const token = request.headers.authorization?.replace("Bearer ", "") ?? "";
    asked.push(`${request.method} ${request.url} ${token}`);
    const user = users[token];
    response.writeHead(user ? 200 : 401, { "content-type": "application/json" });
    response.end(JSON.stringify(user ?? { message: "Bad credentials" }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    ...{ url: `http://127.0.0.1:${port}`, asked },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
