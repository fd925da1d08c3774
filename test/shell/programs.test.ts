import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import { beforeEach, describe, expect, it } from "vitest";
import { nodeDisk } from "../../src/lib/node/disk.ts";
import type { PreparedProgram, ProgramRequest } from "../../src/lib/node/program.ts";
import { programPreparer } from "../../src/runtime/permissions/programs.ts";
import { sandboxSource } from "../../src/runtime/permissions/shells.ts";
import { type TempFolder, tempFolder } from "../../src/testing/temp-folder.ts";
import { hasBubblewrap } from "./bubblewrap.ts";

const works = await hasBubblewrap();
const CANARY = "canary-91c4";

let workspace: TempFolder;
let state: TempFolder;

beforeEach(async () => {
  [workspace, state] = await Promise.all([tempFolder(), tempFolder({ token: CANARY })]);
  return async () => {
    await Promise.all([workspace, state].map((folder) => folder.remove()));
  };
});

function preparer(mode: string, warnings: string[] = []) {
  const environment = { TROUPE_SANDBOX: mode };
  const sandboxes = sandboxSource({ environment, stateRoot: state.path, disk: nodeDisk });
  const onWarning = (message: string): void => void warnings.push(message);
  const prepare = programPreparer({
    sandboxes,
    workspace: [workspace.path],
    stateRoot: state.path,
    disk: nodeDisk,
    onWarning,
  });
  return (script: string, more: Partial<ProgramRequest> = {}): Promise<PreparedProgram> =>
    prepare({
      program: "bash",
      arguments: ["--norc", "-c", script],
      cwd: workspace.path,
      environment: { PATH: process.env.PATH ?? "", GIVEN: "yes" },
      scope: "project",
      hosts: [],
      ...more,
    });
}

function start(prepared: PreparedProgram): ChildProcess {
  return spawn(prepared.program, prepared.arguments, {
    cwd: workspace.path,
    env: prepared.environment,
    stdio: ["pipe", "pipe", "inherit"],
  });
}

async function output(prepared: PreparedProgram, input: string | Buffer = ""): Promise<Buffer> {
  const child = start(prepared);
  const pieces: Buffer[] = [];
  child.stdout?.on("data", (piece: Buffer) => pieces.push(piece));
  child.stdin?.on("error", () => undefined).end(input);
  await new Promise((resolve) => child.once("close", resolve));
  await prepared.release();
  return Buffer.concat(pieces);
}

describe.runIf(works)("a program of the project", () => {
  it("a project's program writes the workspace, and neither reads our state nor reaches a socket", async () => {
    let connections = 0;
    const server = createServer(() => connections++);
    await new Promise<void>((resolve) => server.listen(workspace.at("host.sock"), resolve));
    const script = `echo mine > made; cat '${state.path}/token' 2>&1; echo x > .mcp.json
      '${process.execPath}' -e 'require("net").connect("host.sock").on("error", () => {})'
      touch "$XDG_CACHE_HOME/kept" "$npm_config_cache" && echo "$GIVEN"`;
    const text = String(await output(await preparer("required")(`exec 2>&1; ${script}`)));
    server.close();
    expect(text).not.toContain(CANARY);
    expect(text).toMatch(/yes\n$/);
    expect([await workspace.read("made"), existsSync(workspace.at(".mcp.json")), connections]).toEqual([
      "mine\n",
      false,
      0,
    ]);
    const [own = ""] = readdirSync(state.at("program-caches"));
    expect(readdirSync(state.at(`program-caches/${own}`))).toEqual(["kept", "npm"]);
  });

  it.each(["LD_PRELOAD", "SHELLOPTS", "PS4", "GCONV_PATH"])(
    "a program of the project does not start when it sets %s",
    async (name) => {
      const environment = { PATH: process.env.PATH ?? "", [name]: "x" };
      await expect(preparer("required")("echo ran", { environment })).rejects.toThrow(`it sets ${name}`);
    },
  );

  it("a project's program has a cache that another project's program does not share", async () => {
    await using other = await tempFolder();
    const sandboxes = sandboxSource({ environment: {}, stateRoot: state.path, disk: nodeDisk });
    const prepare = programPreparer({ sandboxes, workspace: [], stateRoot: state.path, disk: nodeDisk });
    const request = { program: "true", arguments: [], environment: {}, scope: "project", hosts: [] } as const;
    const caches = new Set<string | undefined>();
    for (const cwd of [workspace.path, other.path]) {
      const prepared = await prepare({ ...request, cwd });
      caches.add(prepared.environment.XDG_CACHE_HOME);
      await prepared.release();
    }
    expect(caches.size).toBe(2);
  });

  it("a program of the project gets its input and gives its output byte for byte", async () => {
    const bytes = Buffer.from(Array.from({ length: 200_000 }, (_, index) => (index * 7) % 256));
    expect((await output(await preparer("required")("cat"), bytes)).equals(bytes)).toBe(true);
  });

  it("a program of the project ends with all its processes when its launcher is killed", async () => {
    const prepared = await preparer("required")(
      `(setsid sleep 4711.${process.pid} &) ; echo up; sleep 4711.${process.pid}`,
    );
    const child = start(prepared);
    await new Promise((resolve) => child.stdout?.once("data", resolve));
    const living = (): number =>
      readdirSync("/proc").filter((pid) => /^\d+$/.test(pid) && cmdline(pid).includes(`4711.${process.pid}`)).length;
    expect(living()).toBeGreaterThan(0);
    child.kill("SIGKILL");
    await expect.poll(living).toBe(0);
    await prepared.release();
  });
});

describe("a program without a sandbox", () => {
  const none = { get: async () => Promise.reject(new Error("not asked")), close: async () => undefined };

  it("a user's program without a sandbox starts with limits and only the environment it was given", async () => {
    const options = { sandboxes: none, workspace: [workspace.path], stateRoot: state.path, disk: nodeDisk };
    const prepared = await programPreparer(options)({
      program: "bash",
      arguments: ["--norc", "-c", 'echo "$GIVEN$SECRET"; ulimit -c; ulimit -n'],
      cwd: workspace.path,
      environment: { PATH: process.env.PATH ?? "", GIVEN: "yes" },
      scope: "user",
      hosts: [],
    });
    expect(String(await output(prepared))).toMatch(/^yes\n0\n\d+\n$/);
    expect(prepared.warning).toBeUndefined();
  });

  it("a project's program is started without a warning when the sandbox is off", async () => {
    const warnings: string[] = [];
    const prepared = await preparer("off", warnings)("echo ran");
    expect([String(await output(prepared)), prepared.warning, warnings]).toEqual(["ran\n", undefined, []]);
  });

  it.runIf(process.getuid?.() === 0)(
    "a project's program is refused without a required sandbox, and otherwise causes a warning",
    async () => {
      const { spawnSync } = await import("node:child_process");
      spawnSync("chown", ["65534", workspace.path]); // root cannot have a sandbox in the folder of another user
      await expect(preparer("required")("echo ran")).rejects.toThrow(
        /^bash of this project was not started: sandbox.una/,
      );
      const warnings: string[] = [];
      const prepared = await preparer("auto", warnings)("echo ran");
      expect(prepared.warning).toMatch(/^bash of this project: Commands run without a sandbox: /);
      expect(warnings).toEqual([prepared.warning]);
    },
  );
});

function cmdline(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "latin1");
  } catch {
    return "";
  }
}
