import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { createRuntime } from "../../src/runtime/runtime.ts";
import type { SessionRequest } from "../../src/runtime/session-request.ts";
import { submit } from "../../src/runtime/submit.ts";
import type { Session } from "../../src/session/session.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { dataOf } from "../support/stage.ts";

const monorepo = {
  "package.json": '{ "name": "shop", "description": "A shop in two packages" }\n',
  "packages/web/package.json": '{ "name": "web", "description": "What people see" }\n',
  "packages/web/AGENTS.md":
    "# Web\n\n- Fix the linter first.\n- Use tabs.\n- Add tests.\n- Run `npm test`.\n- Be brief.\n",
  "packages/web/index.ts": "/** Shows the shop. */\nexport const show = 1;\n",
  "packages/api/package.json": '{ "name": "api", "description": "What machines see" }\n',
  "packages/api/index.ts": "/** Serves the shop. */\nexport const serve = 1;\n",
};

async function withSession(
  files: Readonly<Record<string, string>>,
  request: Partial<SessionRequest>,
  work: (session: Session) => Promise<void>,
): Promise<void> {
  await using root = await tempFolder();
  const cwd = join(root.path, "work");
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(cwd, path)), { recursive: true });
    writeFileSync(join(cwd, path), text);
  }
  const environment = { PATH: process.env.PATH, HOME: root.path, TROUPE_SANDBOX: "off" };
  const runtime = createRuntime({ environment, home: join(root.path, "home") });
  const session = await runtime.createSession({ cwd, model: { name: "understudy" }, ...request });
  try {
    await work(session);
  } finally {
    await session.close();
    await runtime.close();
  }
}

const lastWords = (session: Session): string => dataOf(session.events, "assistant.message").at(-1)?.content ?? "";

test("instructions found on the way do not change the understudy's question", async () => {
  await withSession(monorepo, {}, async (session) => {
    await submit(session, "Explain how this repository is organised");
    const kinds = dataOf(session.events, "system.notification").map(({ kind }) => kind.type);
    expect(kinds).toContain("instruction_discovered");
    expect(lastWords(session)).toMatch(/^\*\*shop\*\*\nA shop in two packages/);
    expect(lastWords(session)).toContain("`packages/web/`");
  });
});

test("the understudy in autopilot ends impossible work as blocked, and a question as complete", async () => {
  await withSession(monorepo, { mode: "autopilot" }, async (session) => {
    const fixed = await submit(session, "Fix the bug in packages/api/index.ts");
    expect(fixed).toMatchObject({ kind: "answered", verdict: { kind: "blocked" } });
    expect(lastWords(session)).toMatch(/^I cannot do this/);
    const told = await submit(session, "Explain packages/api/index.ts");
    expect(told).toMatchObject({ kind: "answered", verdict: { kind: "complete" } });
  });
});

test("a script's steps for an agent are found by its name, though its prompt never says it", async () => {
  const start = { description: "d", prompt: "go", agent_type: "poet", name: "p1", mode: "sync" };
  const steps = [{ call: { name: "task", arguments: start } }, { say: "Done." }, { agent: "poet", say: "A verse." }];
  const files = {
    "script.json": JSON.stringify({ steps }),
    ".troupe/agents/poet.md": "---\ndescription: Writes verse\n---\n\nYou write.\n",
  };
  await using root = await tempFolder(files);
  const model = `faux:${root.at("script.json")}`;
  await withSession(files, { model: { name: model }, permissions: { allTools: true } }, async (session) => {
    await submit(session, "write");
    expect(session.agents.tasks?.list()).toMatchObject([{ id: "p1", agentType: "poet", status: "completed" }]);
    const said = dataOf(session.events, "assistant.message").map(({ content }) => content);
    expect(said).toEqual(["", "A verse.", "Done."]);
    const failed = await submit(session, "again");
    expect(failed).toMatchObject({ outcome: { kind: "error", error: { kind: "request" } } });
    expect(JSON.stringify(failed)).not.toContain("defect");
  });
});
