import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";
import { calls } from "../../src/model/faux/faux-step.ts";
import type { ModelRequest } from "../../src/model/provider.ts";
import type { EventData } from "../../src/protocol/event.ts";
import type { Session } from "../../src/session/session.ts";

/** A repository that calls itself so, as far as anyone looks at it. */
export const repository = (name = "me/thing"): Record<string, string> => ({
  ".git/config": `[core]\n\tbare = false\n[remote "origin"]\n\turl = https://example.com/${name}.git\n`,
  ".git/HEAD": "ref: refs/heads/main\n",
});

export const settings = (memory: object): Record<string, string> => ({
  "home:settings.json": JSON.stringify({ memory }),
});

export const input = {
  subject: "testing",
  fact: "Tests run with npm test.",
  citations: "package.json:12",
  reason: "Every session needs it.",
};

export const stores = (changes: object = {}) => calls(["store_memory", { ...input, ...changes }]);
export const votes = (changes: object = {}) =>
  calls(["vote_memory", { fact: input.fact, direction: "upvote", reason: "Seen.", ...changes }]);

export type Shown = EventData<"permission.requested">["permissionRequest"];
type Answer = EventData<"permission.completed">["result"];

/** Someone at the screen, who answers every question in the same way. Gives what they were shown. */
export function person(session: Session, answer: Answer = { kind: "approved" }): Shown[] {
  const shown: Shown[] = [];
  session.requests.attach({
    kinds: ["permission"],
    async handle(request) {
      if (request.kind !== "permission") return undefined;
      shown.push(request.permissionRequest);
      return answer;
    },
  });
  return shown;
}

export const memoryPart = ({ system = "" }: ModelRequest): string =>
  /<memories>[\s\S]*<\/memories>/.exec(system)?.[0] ?? "";

export interface Service {
  readonly url: string;
  /** Method, path and body of every request, in order. */
  readonly requests: { readonly request: string; readonly body: unknown }[];
}

type Reply = { readonly status?: number; readonly body?: unknown } | Promise<{ readonly body?: unknown }>;

export const wholePrompt = {
  memoriesContext: '- style: "Use tabs."',
  memoryCount: 1,
  storeDefinition: { version: 2, description: "Keep a fact for the team.", scopes: ["repository"] },
  voteDefinition: { version: 1, description: "Judge a fact of the team." },
  storeInstructions: "Only what everyone should know.",
};

/** A memory service on the loopback, which answers GET so, and whatever is stored with `stored`. */
export async function service(
  prompt: (query: URLSearchParams) => Reply,
  stored: Reply | ((body: Record<string, unknown>) => Reply) = {},
): Promise<Service> {
  const requests: Service["requests"] = [];
  const server = createServer((request, response) => {
    let text = "";
    request.on("data", (piece) => {
      text += piece;
    });
    request.on("end", async () => {
      requests.push({ request: `${request.method} ${request.url}`, body: text === "" ? undefined : JSON.parse(text) });
      const url = new URL(request.url ?? "", "http://localhost");
      const body = text === "" ? {} : JSON.parse(text);
      const given = typeof stored === "function" ? stored(body) : stored;
      const reply = await (request.method === "GET" ? prompt(url.searchParams) : given);
      const { status = 200, body: said = { id: "m1", status: "accepted" } } = { status: undefined, ...reply };
      response.writeHead(status ?? 200, { "content-type": "application/json" }).end(JSON.stringify(said));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests };
}
