/** The table of exit codes in docs/reference/json-output.md, row by row, through the built program. */
import { mkdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect, it } from "vitest";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { script, type TroupeOptions, troupe } from "../support/troupe.ts";

const complete = { call: { name: "task_complete", arguments: { summary: "done" } } };
const look = { call: { name: "view", arguments: { path: "." } } };
const ok = { say: "ok" };

interface Row {
  readonly steps: readonly object[];
  readonly args: readonly string[];
  readonly result: { readonly exitCode: number; readonly outcome: string; readonly verdict?: string };
}

const rows: readonly Row[] = [
  { steps: [ok], args: [], result: { exitCode: 0, outcome: "done" } },
  { steps: [ok], args: ["--check", "true"], result: { exitCode: 0, outcome: "done", verdict: "complete" } },
  { steps: [ok], args: ["--check", "false"], result: { exitCode: 1, outcome: "done", verdict: "failed" } },
  { steps: [look, ok], args: ["--max-turns", "1"], result: { exitCode: 4, outcome: "limit" } },
  {
    steps: [ok],
    args: ["--autopilot", "--max-autopilot-continues", "0"],
    result: { exitCode: 4, outcome: "done", verdict: "out_of_budget" },
  },
  {
    steps: [ok, ok, ok, ok, ok, ok, ok],
    args: ["--autopilot"],
    result: { exitCode: 5, outcome: "done", verdict: "blocked" },
  },
  {
    steps: [complete],
    args: ["--autopilot", "--check", "no-such-program-here"],
    result: { exitCode: 6, outcome: "done", verdict: "unverified" },
  },
];

it("JSON output ends with the exit code, outcome and verdict that the guide's table names", async () => {
  await using folder = await tempFolder();
  const [home, cwd] = [join(folder.path, "home"), join(folder.path, "project")];
  for (const path of [home, cwd]) mkdirSync(path);
  const run = async (args: readonly string[], more: Partial<TroupeOptions> = {}) => {
    const { code, stdout } = await troupe(["-p", "x", "--json", ...args], { cwd, home, ...more });
    const last = JSON.parse(stdout.trim().split("\n").at(-1) || "null");
    return { code, last };
  };
  for (const { steps, args, result } of rows) {
    const { code, last } = await run([...args, "--model", script(folder.path, steps)]);
    const { exitCode, outcome, verdict } = last;
    expect({ args, code, exitCode, outcome, verdict: verdict?.kind }).toEqual({
      ...{ args, code: result.exitCode, verdict: undefined },
      ...result,
    });
  }
  expect(await run(["--max-turns", "none"])).toEqual({ code: 2, last: null });
  for (const [status, exitCode] of [
    [400, 3],
    [401, 7],
  ] as const) {
    const server = createServer((_, response) => {
      response.writeHead(status, { "content-type": "application/json" }).end('{"error":{"message":"no"}}');
    });
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
    const { port } = server.address() as AddressInfo;
    const environment = { TROUPE_BASE_URL: `http://127.0.0.1:${port}/v1`, TROUPE_MODEL: "any" };
    const { code, last } = await run([], { environment });
    server.close();
    expect({ code, outcome: last.outcome, exitCode: last.exitCode }).toEqual({
      ...{ code: exitCode, outcome: "error", exitCode },
    });
  }
  const when = {
    text: '"tool.execution_start"',
    react: (child: { kill(signal: "SIGINT"): unknown }) => child.kill("SIGINT"),
  };
  const sleep = { call: { name: "bash", arguments: { command: "sleep 60", description: "wait" } } };
  const stopped = await run(["--allow-all", "--model", script(folder.path, [sleep, ok])], { when });
  expect(stopped).toMatchObject({ code: 130, last: { exitCode: 130, outcome: "aborted" } });
});

it("the guide names every exit code and every verdict", () => {
  const guide = readFileSync("docs/reference/json-output.md", "utf8");
  for (const code of [0, 1, 2, 3, 4, 5, 6, 7, 130]) expect(guide).toContain(`\n| ${code} | `);
  for (const kind of ["complete", "failed", "blocked", "unverified", "out_of_budget", "aborted", "left"])
    expect(guide).toContain(`\`${kind}\``);
});
