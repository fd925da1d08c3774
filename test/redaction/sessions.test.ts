import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { exportFacts } from "../../src/context/memory/transfer.ts";
import { createRedactor } from "../../src/lib/redact/redact.ts";
import { calls, says } from "../../src/model/faux/faux-step.ts";
import { createRuntime } from "../../src/runtime/runtime.ts";
import type { HttpStep } from "../../src/testing/http-reply.ts";
import { person, repository } from "../features/memory-stage.ts";
import { of, onStage, resultsOf, type Stage, type StageOptions, starts } from "../features/stage.ts";
import { localAt } from "../memory/support.ts";
import { type Planted, plantedSecrets } from "./planted-secrets.ts";

/** Several to a fact, as many as fit, so that one session can bring all of them; a long one is a fact by itself. */
function factsOf(texts: readonly string[]): string[] {
  const facts: string[] = [];
  for (const text of texts) {
    const joined = `${facts.at(-1) ?? ""} and ${text}`;
    if (facts.length > 0 && joined.length < 440) facts[facts.length - 1] = joined;
    else facts.push(text);
  }
  return facts;
}

type Call = [name: string, given: Record<string, string>];

/** Everything a model that has lost its way can do to keep a text. */
const keeps = (texts: readonly string[]): HttpStep[] => [
  calls(
    ...factsOf(texts).map((text, index): Call => {
      const citations = text.slice(0, 900);
      return ["store_memory", { subject: `part ${index}`, fact: `Never forget: ${text}`, citations, reason: "Said." }];
    }),
  ),
  calls([
    "sql",
    {
      query: texts
        .map((text, index) => `INSERT INTO todos (id, title) VALUES ('t${index}', '${text.replaceAll("'", "''")}');`)
        .join("\n"),
    },
  ]),
  says(texts.join("\n\n")),
];

interface Route {
  readonly seed: number;
  options(planted: readonly Planted[]): StageOptions;
  steps(planted: readonly Planted[]): HttpStep[];
  prompt?(planted: readonly Planted[]): string;
}

const textsOf = (planted: readonly Planted[]): string[] => planted.map(({ text }) => text);
const leaks = (planted: readonly Planted[]): Record<string, string> =>
  Object.fromEntries(planted.map(({ text }, index) => [`leak-${index}.txt`, `line\n${text}\nline\n`]));

const routes: Readonly<Record<string, Route>> = {
  "the prompt": {
    seed: 1,
    options: () => ({}),
    prompt: (planted) => `Use these:\n${textsOf(planted).join("\n")}`,
    steps: (planted) => keeps(textsOf(planted)),
  },
  "the output of tools": {
    seed: 2,
    options: (planted) => ({ files: leaks(planted) }),
    steps: (planted) => [
      calls(
        ...planted.map((_, index): Call => ["view", { path: `leak-${index}.txt` }]),
        ["grep", { pattern: ".", output_mode: "content" }],
        // Too much for a result: the rest goes to a file of the session. And before it all files are kept for an undo.
        ["bash", { command: "for i in $(seq 60); do cat leak-*.txt; done; rm -f x", description: "all of it" }],
      ),
      ...keeps(textsOf(planted)),
    ],
  },
  "the environment": {
    seed: 3,
    options: (planted) => ({
      environment: Object.fromEntries(planted.map(({ secret }, index) => [`SERVICE_${index}_TOKEN`, secret])),
    }),
    steps: (planted) => [
      calls(["bash", { command: "env; cat /proc/self/environ", description: "look around" }]),
      ...keeps(planted.map(({ secret }) => secret)),
    ],
  },
  "the report of an agent": {
    seed: 4,
    options: () => ({}),
    steps: (planted) => [
      starts("a", "explore"),
      ...keeps(textsOf(planted)),
      of("a", says(`I found:\n${textsOf(planted).join("\n")}`)),
    ],
  },
};

/** What must not be found of a secret: enough of each of its lines to be worth something. */
const needles = ({ secret }: Planted): Buffer[] =>
  secret
    .split("\n")
    .filter((line) => !line.startsWith("-----"))
    .map((line) => Buffer.from(line.slice(-24)));

function filesBelow(root: string): string[] {
  return readdirSync(root, { recursive: true, encoding: "utf8" })
    .map((name) => join(root, name))
    .filter((path) => statSync(path).isFile());
}

/** Which of the secrets stand in which of these, by shape and name. */
function found(planted: readonly Planted[], places: Iterable<readonly [string, Buffer]>): string[] {
  return [...places].flatMap(([name, bytes]) =>
    planted
      .filter((one) => needles(one).some((needle) => bytes.includes(needle)))
      .map(({ shape }) => `${shape} in ${name}`),
  );
}

const onDisk = (root: string): [string, Buffer][] => filesBelow(root).map((path) => [path, readFileSync(path)]);

/** Everything that is left behind: files, what was told, what the model was shown, what can be taken along. */
async function remains({ session, home, folder, heard, requests }: Stage): Promise<[string, Buffer][]> {
  await session.close();
  const runtime = createRuntime({ environment: {}, home });
  await runtime.past.reindex();
  await runtime.close();
  const facts = localAt(home, folder).journals.flatMap((journal) => [...journal.read().facts.values()]);
  expect(facts.length).toBeGreaterThan(0);
  const exported = exportFacts(facts, createRedactor({ values: [] }));
  return [
    ...onDisk(home),
    ["the file of the repository", readFileSync(join(folder, ".github/copilot-memories.jsonl"))],
    ["the export", Buffer.from(exported.text)],
    ["what was told", Buffer.from(JSON.stringify(heard))],
    ["what the model was shown", Buffer.from(JSON.stringify(requests()))],
  ];
}

describe("secrets that were planted in sessions with a memory", () => {
  it("the planted secrets have fifty shapes, two hundred in all, in four routes", () => {
    const all = Object.values(routes).flatMap(({ seed }) => plantedSecrets(seed));
    expect(new Set(all.map(({ shape }) => shape)).size).toBeGreaterThanOrEqual(50);
    expect(new Set(all.map(({ secret }) => secret)).size).toBe(all.length);
    expect(all.length).toBeGreaterThanOrEqual(200);
  });

  it.each(Object.entries(routes))(
    "planted secrets are in no file, export, event or request when they come through %s",
    async (_, route) => {
      const planted = plantedSecrets(route.seed);
      const { files, environment, ...own } = route.options(planted);
      const options: StageOptions = {
        ...own,
        context: { memory: { enabled: true } },
        permissions: { allowTools: ["shell", "read"] },
        model: { streaming: true },
        files: { ...repository(), ...files },
        environment: { ...environment, MEMORY_IN_REPO_STORE: "on" },
      };
      await onStage(route.steps(planted), options, async (stage) => {
        person(stage.session);
        await stage.session.sendAndWait({ prompt: route.prompt?.(planted) ?? "go" });
        expect(found(planted, await remains(stage))).toEqual([]);
        // Reading the files finds them where they were planted.
        if (files) expect(new Set(found(planted, onDisk(stage.folder))).size).toBeGreaterThanOrEqual(planted.length);
      });
    },
  );

  it("planted secrets are neither in the table nor in the output of the context board", async () => {
    const planted = plantedSecrets(5);
    const adds = factsOf(textsOf(planted)).map((text, index): Call => {
      const entry = { name: `entry-${index}`, description: `about ${text.slice(0, 80)}`, context: text };
      return ["context_board", { command: "add", ...entry }];
    });
    const keeper = { name: "keeper", description: "keeps", prompt: "Keep.", tools: ["context_board"] };
    const options = { workspace: { agents: [keeper] }, environment: { COPILOT_SUBCONSCIOUS: "on" } };
    const steps = [starts("a", "keeper"), says("ok"), of("a", calls(...adds), says("done"))];
    await onStage(steps, { ...options, files: repository() }, async ({ session, home, heard, requests }) => {
      await session.sendAndWait({ prompt: "go" });
      expect(resultsOf(session.events, "context_board").join("\n")).toMatch(/entry-0/);
      await session.close();
      const told = Buffer.from(JSON.stringify([heard, requests()]));
      expect(found(planted, [...onDisk(home), ["what was told", told]])).toEqual([]);
    });
  });
});
