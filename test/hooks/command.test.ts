import { symlink } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { programHook } from "../../src/hooks/load.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { HANG_MS } from "../support/work.ts";
import { bashCall, hookStage, hooksOf, isAlive, place, projectOrigin, userOrigin } from "./stage.ts";

const start = { ...place, source: "new" } as const;
const ends = (events: { type: string; data: Record<string, unknown> }[]) =>
  events.filter(({ type }) => type === "hook.end").map(({ data }) => data);

describe("a command hook", () => {
  it("a command hook with exec runs without a shell, and keeps words whole", async () => {
    await using folder = await tempFolder({
      "say.mjs": "console.log(JSON.stringify({ additionalContext: process.argv.slice(2).join('|') }))",
    });
    const definitions = hooksOf({
      sessionStart: [{ exec: "node", args: ["say.mjs", "a b", "$HOME", "{{project_dir}}"] }],
    });
    const { hooks, requests, released } = hookStage(definitions, { projectRoot: folder.path });
    expect(await hooks.fire("sessionStart", start)).toEqual({ additionalContext: `a b|$HOME|${folder.path}` });
    expect(requests[0]).toMatchObject({ program: "node", scope: "user", hosts: [], cwd: folder.path });
    expect(released()).toBe(1);
  });

  it("a project's command hook runs with the project's identity and without network", async () => {
    const { hooks, requests } = hookStage(hooksOf({ sessionStart: [{ bash: "true" }] }, { origin: projectOrigin }));
    await hooks.fire("sessionStart", start);
    expect(requests[0]).toMatchObject({ scope: "project", hosts: [] });
  });

  it("E01: a command hook sees no secrets of its parent, and its variables expand only from what it may see", async () => {
    const secrets = Object.fromEntries(
      [
        "ANTHROPIC_API_KEY",
        "OPENAI_API_KEY",
        "GITHUB_TOKEN",
        "GH_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "NPM_TOKEN",
        "DATABASE_PASSWORD",
        "SSH_PASSPHRASE",
        "AZURE_CLIENT_SECRET",
        "SLACK_BOT_TOKEN",
        "MY_PRIVATE_KEY",
      ].map((name, index) => [name, `planted-${index}`]),
    );
    expect(Object.keys(secrets)).toHaveLength(12);
    await using folder = await tempFolder();
    const braced = (name: string): string => `$\{${name}}`;
    const env = { MINE: `${braced("HOME")}:$GITHUB_TOKEN:${braced("TERM")}`, WHERE: "{{project_dir}}" };
    const { hooks } = hookStage(hooksOf({ sessionStart: [{ bash: "env > seen", env }] }), {
      projectRoot: folder.path,
      environment: { PATH: process.env.PATH, HOME: "/home/me", TERM: "dumb", ...secrets },
    });
    await hooks.fire("sessionStart", start);
    const seen = await folder.read("seen");
    expect(seen).not.toContain("planted");
    expect(seen).toContain("\nMINE=/home/me::dumb\n".trim());
    expect(seen).toContain(`WHERE=${folder.path}`);
    expect(seen).toContain(`COPILOT_PROJECT_DIR=${folder.path}`);
    expect(seen).toContain("TROUPE_HOOK_DEPTH=1");
  });

  it("a command hook does not run the user's shell start-up files", async () => {
    await using folder = await tempFolder({ ".bashrc": "touch read", ".bash_profile": "touch read" });
    const environment = { PATH: process.env.PATH, HOME: folder.path, BASH_ENV: folder.at(".bashrc") };
    const { hooks } = hookStage(hooksOf({ sessionStart: [{ bash: "true" }] }), {
      projectRoot: folder.path,
      environment,
    });
    await hooks.fire("sessionStart", start);
    expect(Object.keys(await folder.tree())).toEqual([".bash_profile", ".bashrc"]);
  });

  it("a plugin's command hook has the plugin's folders in its environment and in its cwd", async () => {
    await using folder = await tempFolder({ "plugin/run.sh": "env > ../seen", "data/x": "" });
    const plugin = { root: folder.at("plugin"), data: folder.at("data") };
    const origin = { scope: "plugin", owner: "user", file: "hooks.json", plugin } as const;
    const definitions = hooksOf(
      { sessionStart: [{ bash: 'bash "$CLAUDE_PLUGIN_ROOT/run.sh"', cwd: "{{plugin_data_dir}}" }] },
      { origin },
    );
    const { hooks, requests } = hookStage(definitions, { projectRoot: folder.path });
    await hooks.fire("sessionStart", start);
    expect(requests[0]?.cwd).toBe(plugin.data);
    const names = [
      "PLUGIN_ROOT",
      "COPILOT_PLUGIN_ROOT",
      "CLAUDE_PLUGIN_ROOT",
      "COPILOT_PLUGIN_DATA",
      "CLAUDE_PLUGIN_DATA",
    ];
    const seen = await folder.read("seen");
    for (const name of names) expect(seen).toContain(`${name}=${name.endsWith("DATA") ? plugin.data : plugin.root}`);
  });

  it("a command hook is not run with a folder whose name the shell would interpret", async () => {
    await using folder = await tempFolder({ "a $(touch pwned)/x": "" });
    const { hooks, events, requests } = hookStage(hooksOf({ sessionStart: [{ bash: "ls {{project_dir}}" }] }), {
      projectRoot: folder.at("a $(touch pwned)"),
    });
    await hooks.fire("sessionStart", start);
    expect(requests).toEqual([]);
    expect(ends(events)[0]).toMatchObject({
      success: false,
      error: { message: expect.stringContaining("characters") },
    });
  });

  it.each([
    ["inside", "sub", userOrigin, true],
    ["inside", "sub", projectOrigin, true],
    ["above", "..", projectOrigin, false],
    ["above", "..", userOrigin, false],
    ["elsewhere", "/", userOrigin, true],
    ["elsewhere", "/", projectOrigin, false],
    ["behind a link", "link", projectOrigin, false],
    ["nowhere", "missing", userOrigin, false],
  ])("a command hook with cwd %s (%s) of %o runs: %s", async (_, cwd, origin, runs) => {
    await using folder = await tempFolder({ "project/sub/x": "" });
    await symlink("/", folder.at("project/link"));
    const { hooks, requests } = hookStage(hooksOf({ sessionStart: [{ bash: "true", cwd }] }, { origin }), {
      projectRoot: folder.at("project"),
    });
    await hooks.fire("sessionStart", start);
    expect(requests).toHaveLength(runs ? 1 : 0);
  });

  it("a command hook reports up to a hundred progress lines, and answers with the rest", async () => {
    const script = `for i in $(seq 150); do echo '{"type":"progress","message":"step '$i'","temporary":true}'; done
      echo; printf '{"additionalContext":\\n"two\\\\nlines"}'`;
    const { hooks, events } = hookStage(hooksOf({ sessionStart: [{ bash: script }] }));
    expect(await hooks.fire("sessionStart", start)).toEqual({ additionalContext: "two\nlines" });
    const progress = events.filter(({ type }) => type === "hook.progress");
    expect(progress).toHaveLength(100);
    expect(progress[0]?.data).toEqual({ message: "step 1", temporary: true });
  });

  it("a command hook is stopped after 10 MiB of output, and a guard then denies", async () => {
    const { hooks, events } = hookStage(hooksOf({ preToolUse: [{ bash: "head -c 1073741824 /dev/zero" }] }));
    const before = process.memoryUsage().rss;
    const said = await hooks.fire("preToolUse", bashCall);
    expect(said.permissionDecision).toBe("deny");
    expect(process.memoryUsage().rss - before).toBeLessThan(200 * 1024 * 1024);
    expect(ends(events)[0]).toMatchObject({ success: false, error: { message: "it printed more than 10 MiB" } });
  });

  it("a command hook does not wait for a grandchild that holds its output, and ends it", async () => {
    await using folder = await tempFolder();
    const script = `sleep 60 & echo $! > pid; echo '{"additionalContext":"quick"}'`;
    const { hooks } = hookStage(hooksOf({ sessionStart: [{ bash: script }] }), { projectRoot: folder.path });
    const before = performance.now();
    expect(await hooks.fire("sessionStart", start)).toEqual({ additionalContext: "quick" });
    expect(performance.now() - before).toBeLessThan(HANG_MS);
    const pid = Number(await folder.read("pid"));
    await expect.poll(() => isAlive(pid)).toBe(false); // killed, and gone as soon as the system comes round to it
  });

  it("a command hook loses nothing of an answer that fills the pipe while a grandchild holds it", async () => {
    const script = `sleep 60 & node -e 'process.stdout.write(JSON.stringify({ additionalContext: "x".repeat(9000), filler: "y".repeat(900000) }))'`;
    const { hooks } = hookStage(hooksOf({ sessionStart: [{ bash: script }] }));
    expect(await hooks.fire("sessionStart", start)).toEqual({ additionalContext: "x".repeat(9000) });
  });

  it("a command hook loses nothing of an answer while the event loop was too busy to read it", async () => {
    const { hooks } = hookStage(
      hooksOf({ preToolUse: [{ bash: "head -c 60000 /dev/zero | tr '\\0' ' '; echo no >&2; exit 2" }] }),
      {
        prepare: async ({ program, arguments: words, environment }) => {
          setTimeout(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300), 1);
          return { program, arguments: words, environment, release: async () => undefined };
        },
      },
    );
    expect(await hooks.fire("preToolUse", bashCall)).toEqual({
      permissionDecision: "deny",
      permissionDecisionReason: "no",
    });
  });

  it("a command hook leaves no process when it is aborted, reports its end, and passes on the abort", async () => {
    await using folder = await tempFolder();
    const script = "echo $$ > leader; sleep 60 & echo $! > child; wait";
    const stage = hookStage(hooksOf({ preToolUse: [{ bash: script }] }), { projectRoot: folder.path });
    const controller = new AbortController();
    const firing = stage.hooks.fire("preToolUse", bashCall, { signal: controller.signal });
    const rejected = expect(firing).rejects.toBe("enough");
    await expect.poll(() => folder.read("child").catch(() => "")).not.toBe("");
    controller.abort("enough");
    await rejected;
    for (const name of ["leader", "child"]) expect(await isAlive(Number(await folder.read(name)))).toBe(false);
    expect(ends(stage.events)).toMatchObject([{ success: false, error: { message: "it was aborted" } }]);
    expect(stage.released()).toBe(1);
  });

  it("a command hook is killed after its timeout when it ignores SIGTERM", async () => {
    await using folder = await tempFolder();
    const script = "trap '' TERM; echo $$ > leader; while :; do sleep 0.1; done";
    const stage = hookStage(hooksOf({ sessionStart: [{ bash: script, timeoutSec: 1 }] }), { projectRoot: folder.path });
    const before = performance.now();
    expect(await stage.hooks.fire("sessionStart", start)).toEqual({});
    expect(performance.now() - before).toBeLessThan(HANG_MS);
    expect(await isAlive(Number(await folder.read("leader")))).toBe(false);
    expect(ends(stage.events)[0]).toMatchObject({ error: { message: "it did not answer within 1 s" } });
  });

  it("a command hook may close its input before it reads it", async () => {
    const { hooks } = hookStage(hooksOf({ preToolUse: [{ bash: "exec <&-; sleep 0.05; echo '{}'" }] }));
    const toolArgs = { content: "x".repeat(1024 * 1024) };
    expect(await hooks.fire("preToolUse", { ...bashCall, toolArgs })).toEqual({});
  });

  it("a command hook is refused an input that is too long, and a guard then denies", async () => {
    const { hooks, requests } = hookStage(hooksOf({ preToolUse: [{ bash: "true" }] }));
    const toolArgs = { content: "x".repeat(11 * 1024 * 1024) };
    const said = await hooks.fire("preToolUse", { ...bashCall, toolArgs });
    expect([said.permissionDecision, requests.length]).toEqual(["deny", 0]);
  });

  it("a command hook that requires a sandbox does not run without one", async () => {
    const { hooks } = hookStage(hooksOf({ preToolUse: [{ bash: "true" }] }, { origin: projectOrigin }), {
      prepare: () => Promise.reject(new Error("there is no sandbox")),
    });
    const said = await hooks.fire("preToolUse", bashCall);
    expect(said.permissionDecision).toBe("deny");
    expect(said.permissionDecisionReason).toContain("there is no sandbox");
  });
});

describe("a function as a hook", () => {
  it("a function hook gets its own copy of the input, with arguments as a value", async () => {
    const inputs: unknown[] = [];
    const hook = programHook({
      point: "preToolUse",
      run: (input) => {
        inputs.push(structuredClone(input));
        Object.assign(input, { toolArgs: "changed" });
      },
    });
    const { hooks } = hookStage([hook, hook]);
    expect(await hooks.fire("preToolUse", bashCall)).toEqual({});
    expect(inputs).toEqual(Array(2).fill({ ...bashCall, timestamp: Date.UTC(2026, 0, 1) }));
  });

  it("a function hook is abandoned when it never answers", async () => {
    const { hooks } = hookStage([
      programHook({ point: "sessionStart", timeoutMs: 20, run: () => new Promise(() => undefined) }),
    ]);
    expect(await hooks.fire("sessionStart", start)).toEqual({});
  });
});
