import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface Recorded {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

export interface TestServer extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  readonly requests: Recorded[];
}

/** A server on the loopback that remembers what it was asked. */
export async function serve(answer: (request: Recorded, response: ServerResponse) => void): Promise<TestServer> {
  const requests: Recorded[] = [];
  const server = createServer((incoming, response) => {
    const chunks: Buffer[] = [];
    incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
    incoming.on("end", () => {
      const { method = "", url = "", headers } = incoming;
      const request = { method, url, headers, body: Buffer.concat(chunks).toString() };
      requests.push(request);
      answer(request, response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    requests,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

export function json(response: ServerResponse, value: unknown, status = 200): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
}

/** Ends a request as a small compatible server would: a list of models, or an answer of one word. */
export function compatible(models: readonly object[]): (request: Recorded, response: ServerResponse) => void {
  return (request, response) => {
    if (request.url.endsWith("/models")) return json(response, { object: "list", data: models });
    if (request.url.includes("/chat/completions")) {
      const chunk = { choices: [{ index: 0, delta: { content: "ok" }, finish_reason: "stop" }] };
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.end(`data: ${JSON.stringify(chunk)}\n\ndata: [DONE]\n\n`);
      return;
    }
    json(response, { error: { message: "no such page" } }, 404);
  };
}
