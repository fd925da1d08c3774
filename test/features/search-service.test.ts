/** `web_search` by a service that the user configured: which one is asked, and under which rules. */
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { calls, says } from "../../src/model/faux/faux-step.ts";
import { dataOf } from "../support/stage.ts";
import { of, onStage, resultsOf, type StageOptions, starts, toolNames } from "./stage.ts";

/** Without a form by which it could be recognised as a key. */
const KEY = "seven green lamps beside a river";
const searches = () => calls(["web_search", { query: "two words" }]);
const steps = () => [searches(), says("ok")];

interface Service {
  readonly url: string;
  /** Path and body of each request. */
  readonly seen: string[];
}

/** A search service that answers like SearXNG and Tavily, and repeats the key that it was given. */
async function service(): Promise<Service> {
  const seen: string[] = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const piece of request) body += piece;
    seen.push(`${request.url} ${body}`.trim());
    const content = `repeats ${request.headers.authorization?.replace("Bearer ", "")}`;
    response.end(JSON.stringify({ results: [{ title: "A page", url: "https://example.com/a", content }] }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(() => resolve()));
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen };
}

/** A session that may ask every address. */
const inSession: typeof onStage = (script, options, work) =>
  onStage(script, { permissions: { allTools: true, allUrls: true }, ...options }, work);

const settings = (webSearch: object) => ({ "home:settings.json": JSON.stringify({ webSearch }) });
const tavily = ({ url }: Service) => ({ engine: "tavily", url, apiKey: KEY });

it("a search service that only the environment names is used", async () => {
  const searxng = await service();
  await inSession(steps(), { environment: { SEARXNG_URL: `${searxng.url}/` } }, async ({ session, first }) => {
    await session.sendAndWait({ prompt: "go" });
    expect(toolNames(first("main"))).toContain("web_search");
    expect(searxng.seen).toEqual(["/search?q=two+words&format=json"]);
    expect(resultsOf(session.events, "web_search")[0]).toContain("Data from a web search by SearXNG");
  });
});

it("a search service that settings name is preferred to those of the environment", async () => {
  const [searxng, named] = [await service(), await service()];
  const options = { environment: { SEARXNG_URL: searxng.url }, files: settings(tavily(named)) };
  await inSession(steps(), options, async ({ session }) => {
    await session.sendAndWait({ prompt: "go" });
    expect(named.seen).toEqual(['/search {"query":"two words","max_results":8}']);
    expect(searxng.seen).toEqual([]);
  });
});

it("TROUPE_WEB_SEARCH is preferred to settings", async () => {
  const [searxng, named] = [await service(), await service()];
  const environment = { SEARXNG_URL: searxng.url, TROUPE_WEB_SEARCH: "SearXNG" };
  await inSession(steps(), { environment, files: settings(tavily(named)) }, async ({ session }) => {
    await session.sendAndWait({ prompt: "go" });
    expect([searxng.seen.length, named.seen.length]).toEqual([1, 0]);
  });
});

it.each<[string, (found: Service) => StageOptions, string | undefined]>([
  [
    "TROUPE_WEB_SEARCH is off",
    ({ url }) => ({ environment: { SEARXNG_URL: url, TROUPE_WEB_SEARCH: "off" } }),
    undefined,
  ],
  [
    "settings say off",
    ({ url }) => ({ environment: { SEARXNG_URL: url }, files: settings({ engine: "off" }) }),
    undefined,
  ],
  [
    "the chosen service has no key",
    ({ url }) => ({ environment: { SEARXNG_URL: url, TROUPE_WEB_SEARCH: "brave" } }),
    "Web search is not available: Brave Search needs a key. Set BRAVE_API_KEY.",
  ],
  [
    "only a project's settings name a service",
    (found) => ({
      files: { ".troupe/settings.json": JSON.stringify({ webSearch: tavily(found) }) },
      workspace: { trustFolder: true },
    }),
    "webSearch is ignored",
  ],
])("the search tool is not offered where %s", async (_title, options, warning) => {
  const found = await service();
  await inSession(steps(), options(found), async ({ session, first }) => {
    await session.sendAndWait({ prompt: "go" });
    expect(toolNames(first("main"))).not.toContain("web_search");
    expect(found.seen).toEqual([]);
    const warnings = dataOf(session.events, "session.warning").map(({ message }) => message);
    expect(warnings).toEqual(warning === undefined ? [] : [expect.stringContaining(warning)]);
  });
});

it("a wrong TROUPE_WEB_SEARCH is reported with the possible values, and settings decide", async () => {
  const named = await service();
  const options = { environment: { TROUPE_WEB_SEARCH: "altavista" }, files: settings(tavily(named)) };
  await inSession(steps(), options, async ({ session }) => {
    await session.sendAndWait({ prompt: "go" });
    expect(named.seen).toHaveLength(1);
    expect(dataOf(session.events, "session.warning").map(({ message }) => message)).toEqual([
      'TROUPE_WEB_SEARCH is "altavista"; it can be auto, model, off, searxng, brave, tavily, exa.',
    ]);
  });
});

it("the key of a search service reaches neither the log nor the model, even if the service repeats it", async () => {
  const named = await service();
  await inSession(steps(), { files: settings(tavily(named)) }, async ({ session, home, requests }) => {
    await session.sendAndWait({ prompt: "go" });
    const [result] = resultsOf(session.events, "web_search");
    expect(result).toContain("repeats ");
    expect(result).not.toContain(KEY);
    expect(JSON.stringify(requests())).not.toContain(KEY);
    const log = readFileSync(join(home, "session-state", session.id, "events.jsonl"), "utf8");
    expect(log).toContain("repeats ");
    expect(log).not.toContain(KEY);
  });
});

it("plan mode offers the search tool and searches", async () => {
  const named = await service();
  await inSession(steps(), { mode: "plan", files: settings(tavily(named)) }, async ({ session, first }) => {
    await session.sendAndWait({ prompt: "go" });
    expect(toolNames(first("main"))).toContain("web_search");
    expect(named.seen).toHaveLength(1);
    expect(dataOf(session.events, "tool.execution_complete")).toMatchObject([{ success: true }]);
  });
});

it("a subagent searches by the session's service, and its events carry its id", async () => {
  const named = await service();
  const script = [starts("a", "research"), says("ok"), of("a", searches(), says("found it"))];
  await inSession(script, { files: settings(tavily(named)) }, async ({ session }) => {
    await session.sendAndWait({ prompt: "go" });
    expect(named.seen).toHaveLength(1);
    const ends = session.events.flatMap(({ type, data, agentId }) =>
      type === "tool.execution_start" && data.toolName === "web_search" ? [agentId] : [],
    );
    expect(ends).toEqual(["a"]);
    expect(resultsOf(session.events, "web_search")[0]).toContain("https://example.com/a");
  });
});

it.each([
  ["the session", steps()],
  ["a subagent", [starts("a", "research"), says("ok"), of("a", searches(), says("nothing"))]],
])("--deny-url for the host of the search service refuses a search of %s", async (_who, script) => {
  const named = await service();
  const permissions = { allTools: true, allUrls: true, denyUrls: [new URL(named.url).host] };
  await inSession(script, { permissions, files: settings(tavily(named)) }, async ({ session }) => {
    await session.sendAndWait({ prompt: "go" });
    expect(named.seen).toEqual([]);
    expect(resultsOf(session.events, "web_search")[0]).toMatch(/denied|refused|deny/i);
  });
});
