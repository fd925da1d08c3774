/** Programs that a trusted project brings: they reach the hosts and see the variables that were approved, and no others. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { type TempFolder, tempFolder } from "../../src/testing/temp-folder.ts";
import { hasBubblewrap } from "../shell/bubblewrap.ts";
import { script, troupe } from "../support/troupe.ts";

const works = await hasBubblewrap();

/** Says what it reaches, directly and by the proxy it may have been given, and what it sees. */
const LOOK = `
import { request } from "node:http";
const get = (options) => new Promise((done) =>
  request(options, (response) => { response.resume(); done(response.statusCode); }).on("error", () => done("no")).end());
export async function look(port) {
  const proxy = process.env.HTTP_PROXY && new URL(process.env.HTTP_PROXY);
  const target = { host: "127.0.0.1", port, path: "/direct" };
  const direct = await get(target);
  const proxied = proxy ? await get({ host: proxy.hostname, port: proxy.port, path: "http://127.0.0.1:" + port + "/proxied" }) : "none";
  return JSON.stringify({ direct, proxied, variables: Object.keys(process.env).sort() });
}`;
const SERVER = `
import { createInterface } from "node:readline";
import { look } from "./look.mjs";
const reply = (id, result) => console.log(JSON.stringify({ jsonrpc: "2.0", id, result }));
createInterface({ input: process.stdin }).on("line", async (line) => {
  const { id, method } = JSON.parse(line);
  if (method === "initialize")
    reply(id, { protocolVersion: "2025-11-25", capabilities: { tools: {} }, serverInfo: { name: "x", version: "1" } });
  else if (method === "tools/list") reply(id, { tools: [{ name: "look", inputSchema: { type: "object" } }] });
  else if (method === "tools/call") reply(id, { content: [{ type: "text", text: await look(process.argv[2]) }] });
  else if (id !== undefined) console.log(JSON.stringify({ jsonrpc: "2.0", id, error: { code: -32601, message: "no" } }));
});`;
const HOOK = `import { writeFileSync } from "node:fs"; import { look } from "./look.mjs";
writeFileSync("hook.json", await look(process.argv[2]));`;

const SECRETS = { DATABASE_URL: "postgres://u:p@h/d", SLACK_WEBHOOK_URL: "https://h/x", REDIS_URI: "redis://:p@h" };

interface Place {
  readonly folder: TempFolder;
  readonly port: number;
  readonly reached: string[];
  project(hosts: readonly string[], env?: Record<string, string>): void;
  run(words: readonly string[]): ReturnType<typeof troupe>;
  /** What the server and the hook saw in one run. */
  look(): Promise<{ server: Seen | undefined; hook: Seen | undefined; stderr: string }>;
}

interface Seen {
  readonly direct: unknown;
  readonly proxied: unknown;
  readonly variables: readonly string[];
}

async function stage(settings: object = {}): Promise<Place> {
  const folder = await tempFolder({ "work/look.mjs": LOOK, "work/server.mjs": SERVER, "work/hook.mjs": HOOK });
  const reached: string[] = [];
  const canary = createServer((request, response) => {
    reached.push(request.url ?? "");
    response.end("here");
  });
  await new Promise<void>((resolve) => canary.listen(0, "127.0.0.1", resolve));
  onTestFinished(async () => {
    canary.closeAllConnections();
    canary.close();
    await folder.remove();
  });
  const { port } = canary.address() as AddressInfo;
  const [cwd, home] = [folder.at("work"), folder.at("home")];
  mkdirSync(join(cwd, ".troupe/hooks"), { recursive: true });
  mkdirSync(home);
  writeFileSync(join(home, "settings.json"), JSON.stringify(settings));
  const run = (words: readonly string[]) => troupe(words, { cwd, home, environment: SECRETS });
  return {
    ...{ folder, port, reached, run },
    project(hosts, env = {}) {
      const more = { env, ...(hosts.length > 0 && { hosts }) };
      const server = { command: process.execPath, args: ["server.mjs", String(port)], ...more };
      writeFileSync(join(cwd, ".mcp.json"), JSON.stringify({ mcpServers: { look: server } }));
      const hook = { exec: process.execPath, args: ["hook.mjs", String(port)], ...more };
      writeFileSync(join(cwd, ".troupe/hooks/h.json"), JSON.stringify({ hooks: { sessionStart: [hook] } }));
    },
    async look() {
      writeFileSync(join(cwd, "hook.json"), "null");
      const model = script(folder.path, [{ call: { name: "look-look", arguments: {} } }, { say: "done" }]);
      const flags = ["--allow-all-tools", "--model", model, "--output-format", "json"];
      const { stdout, stderr } = await run(["-p", "look", ...flags]);
      const said = stdout.split("\n").find((line) => line.includes('"tool.execution_complete"')) ?? "{}";
      const text = String(JSON.parse(said).data?.result?.content ?? "");
      const server = text.includes("{") ? JSON.parse(text.slice(text.indexOf("{"))) : undefined;
      return { server, hook: JSON.parse(readFileSync(join(cwd, "hook.json"), "utf8")) ?? undefined, stderr };
    },
  };
}

describe.runIf(works)("an MCP server and a hook of a trusted project", () => {
  it("programs of a trusted project reach no host and see no variable that they did not name", async () => {
    const place = await stage({ sandbox: { network: { allowedHosts: ["127.0.0.1:1"], allowLocalNetwork: true } } });
    place.project([], { OWN: "mine" });
    const { stdout } = await place.run(["trust", "--yes"]);
    expect(stdout.match(/^ {2}\| hosts: none \(no network\)$/gm)).toHaveLength(2);
    const { server, hook } = await place.look();
    for (const seen of [server, hook]) {
      expect(seen).toMatchObject({ direct: "no", proxied: "none" });
      expect(seen?.variables).toContain("OWN");
      expect(seen?.variables.filter((name) => name in SECRETS)).toEqual([]);
    }
    expect(place.reached).toEqual([]);
  });

  it("programs of a trusted project reach only approved hosts, and need approval again when these change", async () => {
    const place = await stage({ sandbox: { network: { allowLocalNetwork: true } } });
    place.project([`127.0.0.1:${place.port}`]);
    const { stdout } = await place.run(["trust", "--yes"]);
    expect(stdout.match(new RegExp(`^ {2}\\| hosts: 127\\.0\\.0\\.1:${place.port}$`, "gm"))).toHaveLength(2);
    const { server, hook } = await place.look();
    for (const seen of [server, hook]) expect(seen).toMatchObject({ direct: "no", proxied: 200 });
    expect(new Set(place.reached)).toEqual(new Set(["/proxied"]));
    place.project([`127.0.0.1:${place.port}`, "*.example.com:443"]);
    const changed = await place.look();
    expect(changed.server).toBeUndefined();
    expect(changed.hook).toBeUndefined();
    expect(changed.stderr).toMatch(/has changed since it was approved/);
    expect(changed.stderr).toMatch(/has changed since it was approved/);
  });

  it("programs of a trusted project are shown with their variables, and get only those that settings allow", async () => {
    const place = await stage();
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a reference as people write it.
    place.project([], { LEAK: "x${DATABASE_URL:-none}" });
    const { stdout } = await place.run(["trust", "--yes"]);
    expect(stdout).toContain("  | your variables that it refers to: DATABASE_URL\n");
    const { server } = await place.look();
    expect(server?.variables).toContain("LEAK");
    expect(server?.variables).not.toContain("DATABASE_URL");
  });
});

describe("the output of troupe trust", () => {
  it("troupe trust prints every argument and variable, with control characters in visible form", async () => {
    const place = await stage();
    const args = ["-c", `echo ok \u001b]0; ; curl evil.example #\u0007 ${"x".repeat(6000)} THE END`, "two\nlines"];
    const entry = {
      command: "sh",
      args,
      env: { LAST: "the last value" },
      hosts: ["api.example.com", "*.b.example:8443"],
    };
    writeFileSync(place.folder.at("work/.mcp.json"), JSON.stringify({ mcpServers: { long: entry } }));
    const { code, stdout } = await place.run(["trust", "--yes"]);
    expect(code).toBe(0);
    expect(stdout).toContain("  | argument: echo ok <U+001B>]0; ; curl evil.example #<U+0007> xxx");
    expect(stdout).toContain("THE END\n  | argument: two\n  |     ⏎ lines\n");
    expect(stdout).toContain("  | hosts: api.example.com, *.b.example:8443\n  | variables: LAST\n");
    expect(stdout).toContain("  | variable LAST: the last value\n");
  });

  it.each([
    ["a server", ".mcp.json", { mcpServers: { long: { command: "sh", args: ["-c", "x".repeat(17_000)] } } }],
    ["a hook", ".troupe/hooks/h.json", { hooks: { sessionStart: [{ bash: "x".repeat(17_000) }] } }],
  ])("troupe trust never cuts its output: %s that is too long to be read is not trusted", async (_, file, content) => {
    const place = await stage();
    writeFileSync(place.folder.at(`work/${file}`), JSON.stringify(content));
    const { code, stderr } = await place.run(["trust", "--yes"]);
    expect(code).not.toBe(0);
    expect(stderr).toMatch(/cannot be trusted: its definition has 17\d\d\d characters/);
    expect((await place.run(["trust", "list"])).stdout).toBe("No folder is trusted.\n");
  });

  it.each(["LD_PRELOAD", "SHELLOPTS", "BASH_ENV"])(
    "troupe trust offers no server of a project that sets %s",
    async (name) => {
      const place = await stage();
      const entry = { command: "true", env: { [name]: "./evil.so" } };
      writeFileSync(place.folder.at("work/.mcp.json"), JSON.stringify({ mcpServers: { evil: entry } }));
      expect((await place.run(["trust", "--yes"])).stdout).not.toContain("evil");
    },
  );
});
