import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { type ServiceOptions, type ServicePrompts, serviceMemory } from "../../src/context/memory/service.ts";
import { virtualClock } from "../../src/testing/faux-stamp.ts";
import { HANG_MS } from "../support/work.ts";
import { accepted, ports, SHAPED_SECRET } from "./support.ts";

interface Recorded {
  readonly request: string;
  readonly authorization: string | undefined;
  readonly body: string;
}

type Answer = (response: ServerResponse, request: IncomingMessage, body: string) => void;

async function serviceWith(answer: Answer): Promise<{ url: string; requests: Recorded[] }> {
  const requests: Recorded[] = [];
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (piece) => {
      body += piece;
    });
    request.on("end", () => {
      const { method, url, headers } = request;
      requests.push({ request: `${method} ${url}`, authorization: headers.authorization, body });
      answer(response, request, body);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/base/`, requests };
}

const json =
  (value: unknown, status = 200): Answer =>
  (response) =>
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));

function memoryAt(url: string, changes: Partial<ServiceOptions> = {}) {
  const { stamp, redactor } = ports();
  return serviceMemory({
    url,
    token: "token-1",
    repository: "me/thing",
    timeoutMs: HANG_MS,
    stamp,
    redactor,
    ...changes,
  });
}

test("MEM-05 MEM-06 the service is asked once, and its text, count, definitions and instructions are used", async () => {
  const { url, requests } = await serviceWith(
    json({
      memoriesContext: `- "Use tabs." ${SHAPED_SECRET}`,
      memoryCount: 3,
      storeDefinition: { version: 2, description: "Store it.", scopes: ["repository"] },
      voteDefinition: { version: 1 },
      storeInstructions: "Be brief.",
    }),
  );
  const memory = memoryAt(url);
  const recall = await memory.recall();
  expect(recall).toEqual({
    text: expect.stringMatching(/^<memories>[\s\S]*- "Use tabs\." \[redacted:[\w.-]+\]\n<\/memories>$/),
    ids: [],
    count: 3,
    notices: [],
    definitions: {
      store: { description: "Store it.", scopes: ["repository"] },
      vote: {},
      storeInstructions: "Be brief.",
    },
  });
  expect(await memory.recall()).toEqual(recall);
  expect(requests).toEqual([
    { request: "GET /base/memory/prompt?scope=repository&repo=me%2Fthing", authorization: "Bearer token-1", body: "" },
  ]);
});

const failures: [string, Answer, string][] = [
  ["fails", json({}, 500), "it answered with status 500"],
  ["sends garbage", (response) => response.end("<html>"), "its answer does not follow the contract"],
  ["sends another shape", json({ memoryCount: "many" }), "its answer does not follow the contract"],
  ["sends too much", (response) => response.end("x".repeat(300_000)), "it sent more than 262144 bytes"],
  ["nests without end", (response) => response.end("[".repeat(100_000)), "its answer does not follow the contract"],
  ["hangs", () => undefined, "it did not answer within 300 ms"],
  ["hangs in the middle", (response) => void response.write('{"memoryCount":'), "it did not answer within 300 ms"],
  ["hangs up", (response) => void response.destroy(), "the request failed (ECONNRESET)"],
  ["redirects", (response) => response.writeHead(302, { location: "/memory/prompt" }).end(), "status 302"],
];

test.each(failures)(
  "MEM-07 a service that %s costs the memory of the session and nothing else",
  async (_, answer, why) => {
    const { url, requests } = await serviceWith(answer);
    const recall = await memoryAt(url, why.includes("300 ms") ? { timeoutMs: 300 } : {}).recall();
    expect(recall).toEqual({ ids: [], count: 0, notices: [expect.stringContaining(why)] });
    expect(requests).toHaveLength(1);
  },
);

test("MEM-07 a service that does not answer costs only the memory of the session, and is not queried for a minute", async () => {
  const { url, requests } = await serviceWith(json({}, 503));
  const stamp = virtualClock();
  const memory = memoryAt(url, { stamp });
  await memory.recall();
  await memory.recall();
  expect(requests).toHaveLength(1);
  await stamp.advance(60_000);
  await memory.recall();
  expect(requests).toHaveLength(2);
  const nobody = await memoryAt("http://127.0.0.1:1").recall();
  expect(nobody.notices).toEqual([expect.stringContaining("the request failed (")]);
});

test("MEM-08 concurrent queries share one request; another repository is another request", async () => {
  const waiting: (() => void)[] = [];
  const { url, requests } = await serviceWith((response, request) => {
    const memoriesContext = `about ${request.url}`;
    waiting.push(() => json({ memoriesContext, memoryCount: 1 })(response, request, ""));
  });
  const prompts: ServicePrompts = new Map();
  const at = (repository: string) => memoryAt(url, { timeoutMs: 5000, repository, prompts });
  const asked = ["me/thing", "me/thing", "me/other"].map((repository) => at(repository).recall());
  await expect.poll(() => waiting.length).toBe(2);
  for (const go of waiting) go();
  const texts = (await Promise.all(asked)).map(({ text }) => /repo=([\w%]+)/.exec(text ?? "")?.[1]);
  expect(texts).toEqual(["me%2Fthing", "me%2Fthing", "me%2Fother"]);
  await at("me/other").recall();
  expect(requests).toHaveLength(2);
});

test("the service is queried again after five minutes, and for another token", async () => {
  const { url, requests } = await serviceWith(json({ memoryCount: 0 }));
  const stamp = virtualClock();
  const prompts: ServicePrompts = new Map();
  const memory = memoryAt(url, { stamp, prompts });
  await memory.recall();
  await memoryAt(url, { stamp, prompts, token: "token-2" }).recall();
  await stamp.advance(299_000);
  await memory.recall();
  expect(requests).toHaveLength(2);
  await stamp.advance(2_000);
  await memory.recall();
  expect(requests).toHaveLength(3);
});

test("MEM-09 MEM-10 the service is not asked without a repository, unless it knows users and needs no repository", async () => {
  const { url, requests } = await serviceWith(json({ memoryCount: 0 }));
  const { repository: _, ...base } = { repository: "", ...ports() };
  const unknown = (changes: Partial<ServiceOptions>) => serviceMemory({ url, ...base, ...changes });
  const nothing = { ids: [], count: 0, notices: [] };
  expect(await unknown({}).recall()).toEqual(nothing);
  expect(await unknown({ hasUserScope: true, needsRepository: true }).recall()).toEqual(nothing);
  expect(requests).toEqual([]);
  await unknown({ hasUserScope: true }).recall();
  expect(requests.map(({ request }) => request)).toEqual(["GET /base/memory/prompt?scope=user"]);
});

test("a fact is sent to the service whole and without secrets, and the next session queries it again", async () => {
  const { url, requests } = await serviceWith((response, request, body) =>
    json(request.method === "GET" ? { memoryCount: 1 } : { id: "m1", status: "proposed" })(response, request, body),
  );
  const memory = memoryAt(url);
  await memory.recall();
  expect(await memory.store(accepted("Use tabs."))).toEqual({ id: "m1", outcome: "proposed" });
  expect(JSON.parse(requests[1]?.body ?? "")).toEqual({
    subject: "testing",
    fact: "Use tabs.",
    citations: "package.json:12",
    reason: "Later sessions run the tests too.",
    scope: "repository",
    repo: "me/thing",
    status: "accepted",
    author: "agent",
    source: { kind: "tool", detail: "session-1" },
  });
  await memory.recall();
  expect(requests).toHaveLength(3);
  await expect(memory.store(accepted(`Use ${SHAPED_SECRET}.`))).rejects.toThrow("it contains a secret");
  expect(requests).toHaveLength(3);
});

test.each([
  [401, "did not accept your credentials"],
  [403, "You may not write to the memory of me/thing."],
  [404, "knows no such repository or fact (me/thing)"],
  [409, "is already stored"],
  [500, "answered with status 500"],
])("the service's refusal with status %i is reported in words", async (status, words) => {
  const { url } = await serviceWith(json({}, status));
  const vote = { fact: "Use tabs.", direction: "upvote", reason: "Seen.", voter: "agent:1" } as const;
  await expect(memoryAt(url).store(accepted("Use tabs."))).rejects.toThrow(words);
  await expect(memoryAt(url).vote(vote)).rejects.toThrow(words);
});
