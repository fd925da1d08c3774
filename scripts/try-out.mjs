// Runs the built command line once against a model server of our own: to learn which modules a prompt needs, and to fill
// the code cache with the functions it runs. Without either everything works, only slower: nothing here fails a build.
import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";

const PATIENCE_MS = 20_000;

/**
 * With `trace` the names of all modules that ran, otherwise none, and the code cache is written. `scripted`: the model is
 * a file, which needs modules of the last pack.
 */
export async function tryOut(launcher, { calls, trace, scripted = false }) {
  const folder = mkdtempSync(join(tmpdir(), "troupe-build-"));
  const server = await modelServer(calls);
  const coverage = join(folder, "coverage");
  const env = {
    PATH: process.env.PATH,
    TROUPE_HOME: join(folder, "home"),
    TROUPE_BASE_URL: `http://127.0.0.1:${server.address().port}/v1`,
    TROUPE_MODEL: "warm",
    ...(trace && { NODE_V8_COVERAGE: coverage }),
  };
  try {
    const script = join(folder, "script.json");
    writeFileSync(script, JSON.stringify({ steps: [{ say: "ready" }] }));
    const model = scripted ? ["--model", `faux:${script}`] : [];
    const child = spawn(process.execPath, [launcher, "-s", "--allow-all-tools", "-p", "warm", ...model], {
      cwd: folder,
      env,
      stdio: ["ignore", "ignore", "inherit"],
      timeout: PATIENCE_MS,
    });
    await new Promise((resolve) => child.once("close", resolve));
    return new Set(trace ? modulesRun(coverage) : []);
  } catch (error) {
    console.error(`build: could not try out the command line: ${error}`);
    return new Set();
  } finally {
    server.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A model that makes these calls, one in each turn, and then answers. */
async function modelServer(calls) {
  const chunk = (delta, finish_reason) =>
    `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
  let asked = 0;
  const server = createServer((request, response) => {
    request.resume().on("end", () => {
      const [name, input] = calls[asked++] ?? [];
      const call = { index: 0, id: `c${asked}`, function: { name, arguments: JSON.stringify(input) } };
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.end(name ? chunk({ tool_calls: [call] }, "tool_calls") : chunk({ content: "ready" }, "stop"));
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server;
}

/** A module in a pack is a function that bears its name. */
function* modulesRun(coverage) {
  for (const file of readdirSync(coverage)) {
    const { result } = JSON.parse(readFileSync(join(coverage, file), "utf8"));
    for (const { url, functions } of result) {
      if (!url.includes("/dist/cli/")) continue;
      for (const { functionName, ranges } of functions) if (ranges[0].count > 0) yield functionName;
    }
  }
}
