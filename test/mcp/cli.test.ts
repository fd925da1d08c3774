// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are the references people write into their files.
import { mkdirSync, statSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { Arguments } from "../../src/cli/args.ts";
import { parse } from "../../src/cli/args.ts";
import { type McpCommands, mcpCommand } from "../../src/cli/mcp/mcp.ts";
import { options } from "../../src/cli/options.ts";
import { nodeDisk } from "../../src/lib/node/disk.ts";
import { type FileTree, type TempFolder, tempFolder } from "../../src/testing/temp-folder.ts";
import { type McpAdministrationOptions, mcpAdministration } from "../../src/tools/mcp/config/config-admin.ts";
import { openPins } from "../../src/tools/mcp/config/pins.ts";
import type { McpToolDefinition } from "../../src/tools/mcp/server.ts";
import { oauthServer } from "./oauth-server.ts";

const FILE = "home/mcp-config.json";

async function place(tree: FileTree = {}): Promise<TempFolder> {
  const folder = await tempFolder(tree);
  mkdirSync(folder.at("work"), { recursive: true });
  return folder;
}

/** The arguments as a person types them; commas in verbatim values are theirs. */
function typed(words: readonly string[]): Arguments {
  const given = parse(words);
  const own = words.slice(0, words.includes("--") ? words.indexOf("--") : words.length);
  const verbatim = (name: string): string[] =>
    own.flatMap((word, index) => (own[index - 1] === `--${name}` ? [word] : []));
  const isVerbatim = (name: string): boolean => options.find((option) => option.name === name)?.verbatim === true;
  return { ...given, list: (name) => (isVerbatim(name) ? verbatim(name) : given.list(name)) };
}

type More = Partial<Omit<McpAdministrationOptions, "sources">> & {
  sources?: Partial<McpAdministrationOptions["sources"]>;
  environment?: Record<string, string>;
};

async function run(folder: TempFolder, words: readonly string[], more: More = {}) {
  const { sources, environment = {}, ...rest } = more;
  const administration: McpCommands = await mcpAdministration({
    sources: { stateRoot: folder.at("home"), cwd: folder.at("work"), environment, trust: () => "approved", ...sources },
    disk: nodeDisk,
    ...rest,
  });
  let printed = "";
  const said: string[] = [];
  const code = await mcpCommand(typed(["mcp", ...words]), {
    administration,
    environment,
    signal: new AbortController().signal,
    print: (text) => {
      printed += text;
      const address = /^Open this address[\s\S]*?(http\S+)/.exec(text)?.[1];
      if (address) void fetch(address).then((response) => response.text());
    },
    say: (text) => said.push(text),
  });
  return { code, printed, said };
}

const whoami = (description = "Who?"): McpToolDefinition => ({
  server: "a",
  name: "whoami",
  description,
  inputSchema: { type: "object" },
});

describe("troupe mcp add", () => {
  it("troupe mcp add writes a program with its arguments, in a file that only the owner can read", async () => {
    await using folder = await place();
    const words = ["add", "files", "--env", "TOKEN=${MY_TOKEN}", "--env", "LIST=a,b=c", "--tools", "read, list"];
    const { code, printed } = await run(folder, [
      ...words,
      "--timeout",
      "500",
      "--",
      "npx",
      "-y",
      "server",
      "--env",
      "x",
    ]);
    expect([code, printed]).toEqual([0, `Added files to ${folder.at(FILE)}.\n`]);
    expect(JSON.parse(await folder.read(FILE))).toEqual({
      mcpServers: {
        files: {
          type: "stdio",
          command: "npx",
          args: ["-y", "server", "--env", "x"],
          env: { TOKEN: "${MY_TOKEN}", LIST: "a,b=c" },
          tools: ["read", "list"],
          timeout: 500,
        },
      },
    });
    expect(statSync(folder.at(FILE)).mode & 0o777).toBe(0o600);
  });

  it("troupe mcp add writes an address with its headers, and keeps the other content of the file", async () => {
    await using folder = await place({ [FILE]: '{"other":[1],"mcpServers":{"old":{"command":"x","mine":true}}}' });
    await run(folder, ["add", "web", "https://example.com/mcp", "--header", "Authorization: Bearer s3cret, really"]);
    await run(folder, ["add", "events", "http://127.0.0.1:1/sse", "--transport", "sse"]);
    expect(JSON.parse(await folder.read(FILE))).toEqual({
      other: [1],
      mcpServers: {
        old: { command: "x", mine: true },
        web: { type: "http", url: "https://example.com/mcp", headers: { Authorization: "Bearer s3cret, really" } },
        events: { type: "sse", url: "http://127.0.0.1:1/sse" },
      },
    });
  });

  it.each([
    [["add", "a"], "needs a command or a url"],
    [["add", "bad name", "--", "x"], "cannot be used: a name is 1 to 64"],
    [["add", "__proto__", "--", "x"], "this name is not allowed"],
    [["add", "old", "--", "x"], "The server old already exists."],
    [["add", "a", "--env", "=s3cret", "--", "x"], "A value is not of the form --env NAME=value."],
    [["add", "a", "https://a", "--header", "s3cret"], 'A value is not of the form --header "Name: value".'],
    [["add", "a", "https://me:s3cret@a"], "url: must not contain a user name or password"],
    [["add", "a", "https://a", "b"], "A url takes no arguments"],
    [["add", "a", "https://a", "--env", "A=s3cret"], "--env is for a command"],
    [["add", "a", "--header", "A: s3cret", "--", "x"], "--header is for a url"],
    [["add", "a", "--transport", "carrier", "--", "x"], "--transport must be one of"],
  ])("troupe mcp add refuses %j, changes nothing and repeats no secret", async (words, message) => {
    await using folder = await place({ [FILE]: '{"mcpServers":{"old":{"command":"x"}}}' });
    const failure = await run(folder, words).then(
      () => "no failure",
      (error: Error) => error.message,
    );
    expect(failure).toContain(message);
    expect(failure).not.toContain("s3cret");
    expect(await folder.read(FILE)).toBe('{"mcpServers":{"old":{"command":"x"}}}');
  });

  it("troupe mcp add does not touch a file that it cannot parse", async () => {
    await using folder = await place({ [FILE]: "{ half" });
    await expect(run(folder, ["add", "a", "--", "x"])).rejects.toMatchObject({
      message: `${folder.at(FILE)} is not a JSON object.`,
      hint: "Fix or remove it. Nothing was changed.",
    });
    expect(await folder.tree()).toEqual({ [FILE]: "{ half" });
  });
});

describe("troupe mcp list and get", () => {
  const config = JSON.stringify({
    mcpServers: {
      a: {
        command: "npx",
        args: ["-y", "server", "--token", "s3cret", "$HIDDEN"],
        env: { KEY: "s3cret", REF: "$HIDDEN" },
      },
      web: { url: "https://example.com/mcp?key=s3cret", headers: { Authorization: "Bearer s3cret", Ref: "${HIDDEN}" } },
      off: { command: "x", disabled: true },
    },
  });
  const environment = { HIDDEN: "s3cret" };

  it("troupe mcp list shows scope, transport and state without connecting, and no secret", async () => {
    await using folder = await place({ [FILE]: config, "work/.mcp.json": '{"mcpServers":{"p":{"command":"y"}}}' });
    const probe = () => Promise.reject(new Error("must not connect"));
    const { printed, said } = await run(folder, ["list"], { environment, probe, sources: { trust: () => "changed" } });
    expect(printed.split("\n")).toEqual([
      "a    user     stdio  enabled                          npx -y server --token *** $HIDDEN (variables: KEY, REF)",
      "web  user     http   enabled                          https://example.com/mcp?key=*** (headers: Authorization, Ref)",
      "p    project  stdio  changed since it was approved    y",
      "off  user     stdio  disabled                         x",
      "",
    ]);
    expect(said).toEqual([expect.stringContaining("p: not used, because it has changed since it was approved")]);
    const asJson = await run(folder, ["list", "--json"], { environment });
    expect(JSON.parse(asJson.printed)).toMatchObject([
      { name: "p", state: "enabled" },
      { name: "a", settings: { env: { KEY: "***", REF: "$HIDDEN" } } },
      { name: "web", signedIn: false },
      { name: "off", state: "disabled" },
    ]);
    expect(printed + asJson.printed).not.toContain("s3cret");
  });

  it("troupe mcp get shows a server with its tools and which of them are approved", async () => {
    await using folder = await place({ [FILE]: config });
    const probe = async () => ({ status: "connected" as const, definitions: [whoami()] });
    const { printed } = await run(folder, ["get", "a", "--connect"], { environment, probe });
    expect(printed).toBe(
      [
        "a: connected",
        `  from ${folder.at(FILE)} (user)`,
        "  transport: stdio",
        "  command: npx",
        "  args: -y server --token *** $HIDDEN",
        "  env: KEY=*** REF=$HIDDEN",
        "  tools: *",
        "  timeout: 30000",
        "tools, as last listed (1 tool, 1 new):",
        "  whoami (not approved yet)",
        "",
      ].join("\n"),
    );
    const failing = async () => ({ status: "failed" as const, error: "no \u001b[2Jsuch program" });
    expect((await run(folder, ["list", "--connect"], { environment, probe: failing })).printed).toContain(
      "failed: no such program",
    );
  });

  it("troupe mcp get suggests the nearest server, and troupe mcp the nearest command", async () => {
    await using folder = await place({ [FILE]: '{"mcpServers":{"github":{"command":"x"}}}' });
    await expect(run(folder, ["get", "gihtub"])).rejects.toMatchObject({ hint: "Did you mean github?" });
    await expect(run(folder, ["aprove", "github"])).rejects.toThrow("Did you mean approve?");
    await expect(run(folder, ["constructor", "github"])).rejects.toThrow("Unknown: troupe mcp constructor.");
    await expect(run(folder, ["get"])).rejects.toThrow("troupe mcp get needs the name of a server.");
    await using empty = await place();
    expect((await run(empty, [])).printed).toBe("No MCP servers. Add one with: troupe mcp add <name> -- <command>\n");
  });
});

describe("troupe mcp remove, enable and disable", () => {
  it("troupe mcp remove, enable and disable change the user's file only", async () => {
    const before = { mcpServers: { a: { command: "x" }, b: { command: "x", disabled: true } }, kept: 1 };
    await using folder = await place({
      [FILE]: JSON.stringify(before),
      "work/.mcp.json": '{"mcpServers":{"p":{"command":"y"}}}',
    });
    expect((await run(folder, ["disable", "p"])).printed).toBe("Disabled p.\n");
    expect((await run(folder, ["enable", "b"])).printed).toBe("Enabled b.\n");
    expect((await run(folder, ["remove", "a"])).printed).toBe("Removed a.\n");
    const after = { mcpServers: { b: { command: "x" } }, kept: 1, disabledMcpServers: ["p"] };
    expect(JSON.parse(await folder.read(FILE))).toEqual(after);
    await expect(run(folder, ["remove", "p"])).rejects.toThrow(`configured in ${folder.at("work/.mcp.json")}`);
    await run(folder, ["enable", "p"]);
    expect(JSON.parse(await folder.read(FILE))).toEqual({ mcpServers: after.mcpServers, kept: 1 });
    const more = { sources: { disabled: ["p"] } };
    await expect(run(folder, ["enable", "p"], more)).rejects.toThrow("p is still disabled, by settings");
  });
});

describe("troupe mcp approve", () => {
  it("F01, F02: troupe mcp approve shows whole definitions and differences, and approves exactly these", async () => {
    await using folder = await place({ [FILE]: '{"mcpServers":{"a":{"command":"x"}}}' });
    const listing = { now: [whoami()] };
    const probe = async () => ({ status: "connected" as const, definitions: listing.now });
    const first = await run(folder, ["approve", "a"], { probe });
    expect(first.printed).toMatch(/^\ntool whoami\n {2}\| Who\?\n(.|\n)*\nApproved 1 tool of a, as shown\.\n$/);
    expect((await run(folder, ["approve", "a"], { probe })).printed).toBe("Nothing of a waits for approval.\n");
    listing.now = [whoami("Who?\u{e0041}")];
    const { printed } = await run(folder, ["approve", "a"], { probe });
    expect(printed).toContain("-   | Who?\n+   | Who?<U+E0041>");
    const failing = async () => ({ status: "failed" as const, error: "gone" });
    await expect(run(folder, ["approve", "a"], { probe: failing })).rejects.toThrow("could not be listed: gone");
  });

  it("troupe mcp approve uses the last listing when it cannot connect", async () => {
    await using folder = await place({ [FILE]: '{"mcpServers":{"a":{"command":"x"}}}' });
    const pins = await openPins({ disk: nodeDisk, stateRoot: folder.at("home") });
    const config = { name: "a", scope: "user", source: "", tools: [], timeoutMs: 1 } as const;
    const transport = { type: "stdio", command: "x", args: [], environment: {} } as const;
    await pins.remember({ ...config, transport }, [whoami()]);
    expect((await run(folder, ["approve", "a"])).printed).toContain("Approved 1 tool of a");
    expect(pins.check({ ...config, transport }, whoami())).toBe("ok");
  });

  it("A05: troupe mcp approve approves a project's entry as shown, once its folder is trusted", async () => {
    await using folder = await place({ "work/.mcp.json": '{"mcpServers":{"p":{"command":"sh","args":["-c","id"]}}}' });
    const approved: string[] = [];
    const approveItem = async ({ digest }: { digest: string }): Promise<void> => void approved.push(digest);
    const { printed } = await run(folder, ["approve", "p"], { approveItem, sources: { trust: () => "new" } });
    expect(printed).toBe(
      "The server uses:\nprogram: sh\nargument: -c\nargument: id\nhosts: none (no network)\nvariables: none of its own\nyour variables that it refers to: none\n\nApproved the server of p, as shown.\n",
    );
    expect(approved).toEqual([expect.stringMatching(/^[0-9a-f]{64}$/)]);
    const untrusted = run(folder, ["approve", "p"], { approveItem, sources: { trust: () => "untrusted" } });
    await expect(untrusted).rejects.toThrow("belongs to a folder that is not trusted");
  });

  it("troupe mcp add --connect can approve the server's tools at once", async () => {
    await using folder = await place();
    const probe = async () => ({ status: "connected" as const, definitions: [whoami()] });
    const { printed } = await run(folder, ["add", "a", "--connect", "--", "x"], { probe });
    expect(printed).toMatch(/^Added a to .*\n\ntool whoami\n(.|\n)*Approved 1 tool of a/);
  });
});

describe("troupe mcp login and logout", () => {
  it("troupe mcp login prints the address and keeps the sign-in, and logout removes it", async () => {
    const server = await oauthServer();
    await using folder = await place({ [FILE]: JSON.stringify({ mcpServers: { web: { url: server.url } } }) });
    const { printed } = await run(folder, ["login", "web"]);
    expect(printed).toMatch(
      /^Open this address to sign in to web:\n\n {2}http:\/\/127\.0\.0\.1:\d+\/authorize\?.*\n\nSigned in to web\.\n$/,
    );
    expect((await run(folder, ["list"])).printed).toContain("enabled, signed in");
    expect((await run(folder, ["logout", "web"])).printed).toBe("Forgot the sign-in to web.\n");
    expect((await run(folder, ["logout", "web"])).printed).toBe("There was no sign-in to web.\n");
    server.isProtected = false;
    expect((await run(folder, ["login", "web"])).printed).toBe("web needs no sign-in.\n");
  });

  it("troupe mcp login is for remote servers, and takes a secret only from the environment", async () => {
    const server = await oauthServer();
    server.clients.set("robot", { secret: "s3cret" });
    const robot = { url: server.url, oauthClientId: "robot", oauthGrantType: "client_credentials" };
    await using folder = await place({ [FILE]: JSON.stringify({ mcpServers: { robot, a: { command: "x" } } }) });
    const environment = { TROUPE_MCP_CLIENT_SECRET: "s3cret" };
    expect((await run(folder, ["login", "robot"], { environment })).printed).toBe("Signed in to robot.\n");
    await expect(run(folder, ["login", "a"])).rejects.toThrow("a is not a remote server");
  });
});
