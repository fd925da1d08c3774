/** E: keys and tokens, in environments and in everything that is kept or shown. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type Attack, Findings } from "./attack.ts";
import { serverProgram } from "./evil-server.ts";
import { bash, call, type Stage, write } from "./stage.ts";

export const secretAttacks: readonly Attack[] = [
  { id: "E01", title: "secrets in the environment of children", run: childEnvironments },
  { id: "E02", title: "a key that a tool prints", control: "weakened program", run: printedKey },
];

const NAMES = [
  ...["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GITHUB_TOKEN", "GH_TOKEN", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"],
  ...["NPM_TOKEN", "DATABASE_URL", "SSH_AUTH_SOCK", "KUBECONFIG", "MY_PASSWORD", "STRIPE_SECRET"],
];

async function childEnvironments(stage: Stage): Promise<Findings> {
  const findings = new Findings();
  const canary = `canary${process.pid}secret`;
  const secrets = Object.fromEntries(NAMES.map((name) => [name, canary]));
  const at = (name: string): string => join(stage.workspace, name);
  const server = at("server.mjs");
  write(server, serverProgram);
  const entry = (name: string): object => ({ command: process.execPath, args: [server, at(name), "tool"] });
  write(join(stage.state, "mcp-config.json"), JSON.stringify({ mcpServers: { mine: entry("user-server") } }));
  const hook = (name: string): string =>
    JSON.stringify({ version: 1, hooks: { sessionStart: [{ bash: `env > ${at(name)}` }] } });
  write(join(stage.state, "hooks", "own.json"), hook("user-hook"));
  stage.files({
    ".mcp.json": JSON.stringify({ mcpServers: { theirs: entry("project-server") } }),
    ".troupe/hooks/own.json": hook("project-hook"),
  });
  const places = ["shell", "terminal-less", "user-server", "project-server", "user-hook", "project-hook"];
  if (stage.guarded) {
    const run = await stage.prompt({
      steps: [
        bash("env > shell"),
        bash("env > terminal-less", { mode: "async" }),
        call("mine-tool", {}),
        call("theirs-tool", {}),
        bash("sleep 0.3"),
      ],
      flags: ["--allow-all", "--trust-folder"],
      environment: { ...secrets, TROUPE_SANDBOX: "auto" },
    });
    for (const place of places) findings.expect(existsSync(at(place)), `${place} has run: ${run.stderr.slice(-200)}`);
  } else {
    await stage.spawned(["sh", "-c", `env > ${at("shell")}`], { environment: { ...secrets, PATH: "/usr/bin:/bin" } });
  }
  for (const place of places) {
    const seen = existsSync(at(place)) ? readFileSync(at(place), "utf8") : "";
    findings.effect(seen.includes(canary), `a secret in the environment of ${place}`);
  }
  return findings;
}

/** A value from the environment, and one that only looks like a key. */
const KNOWN = "Zk9vYmFyQ2FuYXJ5L1ZhbHVl+Xyz123QwErTy";
const PATTERNED = `ghp_${"Ab3dEf6hIj".repeat(3)}Kl9mNp`;

async function printedKey(stage: Stage): Promise<Findings> {
  const findings = new Findings();
  const forms = [
    KNOWN,
    Buffer.from(KNOWN).toString("base64"),
    encodeURIComponent(KNOWN),
    JSON.stringify(KNOWN).slice(1, -1),
    PATTERNED,
  ];
  const filler = "nothing to see here\n".repeat(2_000);
  stage.files({ "keys.txt": `${forms.join("\n")}\n`, "large.txt": `${filler}${forms.join("\n")}\n${filler}` });
  const environment = { OPENAI_API_KEY: KNOWN, TROUPE_SANDBOX: "auto" };
  const run = await stage.prompt({
    steps: [
      call("view", { path: "keys.txt" }),
      call("grep", { pattern: ".", path: "keys.txt", output_mode: "content" }),
      bash("cat keys.txt; cat keys.txt >&2"),
      bash("cat large.txt"),
      bash("for i in 1 2 3; do head -c 20 keys.txt; sleep 0.05; tail -c +21 keys.txt; done"),
      bash(`echo ${KNOWN} | cat`),
      call("view", { path: `missing-${KNOWN}` }),
      call("sql", {
        query: `INSERT INTO todos (id, title) VALUES ('a', 'use ${KNOWN} and ${PATTERNED}') /* ${KNOWN} */`,
      }),
      call("sql", { query: `CREATE TABLE kept (word TEXT /* ${KNOWN} */, "${KNOWN}" TEXT)` }),
      call("update_todo", { todos: `- [ ] send ${KNOWN} and ${PATTERNED}` }),
      { say: `The key is ${KNOWN}, and ${PATTERNED}.`, chunkSize: 3 },
    ],
    flags: ["--allow-all", "--log-level", "debug", "--stream", "on", "--name", "keys"],
    environment,
  });
  findings.expect(run.code === 0, `exit code 0, not ${run.code}: ${run.stderr.slice(-300)}`);
  const outputs = [
    { name: "json output", text: run.stdout },
    { name: "stderr", text: run.stderr },
  ];
  for (const args of [["list"], ["show", "keys"], ["export", "keys"], ["search", "key"]]) {
    const { said } = await stage.troupe(["sessions", ...args], { environment });
    outputs.push({ name: `sessions ${args[0]}`, text: said });
  }
  for (const { name, text } of outputs)
    for (const form of forms) findings.effect(text.includes(form), `${form} in ${name}`);
  for (const hit of stage.hits(stage.state, forms)) findings.effect(true, hit);
  return findings;
}
