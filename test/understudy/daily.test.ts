/** Questions of daily use, each in a small repository made for it. */
import { expect, test } from "vitest";
import { drive } from "./drive.ts";
import { stage } from "./repositories.ts";

async function playIn(files: Readonly<Record<string, string>>, prompt: string) {
  await using at = await stage(files);
  return await drive(at.cwd, prompt, { scratch: at.scratch });
}

async function answerIn(files: Readonly<Record<string, string>>, prompt: string): Promise<string> {
  return (await playIn(files, prompt)).answer;
}

/** A manifest of about 30 KB: its exports alone are too large for one view. */
function largeManifest(more: Readonly<Record<string, unknown>> = {}): string {
  const exports = Object.fromEntries(
    Array.from({ length: 220 }, (_, index) => [
      `./part-${index}`,
      { types: `./dist/types/part-${index}/index.d.ts`, import: `./dist/part-${index}/index.js` },
    ]),
  );
  const scripts = { build: "make-it", test: "try-it --all" };
  return `${JSON.stringify({ name: "wide", main: "dist/start.js", exports, ...more, scripts }, null, 2)}\n`;
}

test("a package.json that is too large for one view still names its commands and entry points", async () => {
  const files = { "package.json": largeManifest(), "src/start.ts": "export {};\n" };
  expect(files["package.json"].length).toBeGreaterThan(24_000);
  const { answer, messages } = await playIn(files, "How do I run the tests?");
  expect(answer).toMatch(/^\*\*Build and test\*\*\n- `npm run test` → `try-it --all` `package.json:\d+`/);
  const overview = await answerIn(files, "How is this repository organised?");
  expect(overview).toContain("`src/start.ts` (as `dist/start.js`) – main in `package.json:3`");
  expect(messages.filter((message) => message.role === "tool" && message.isError)).toEqual([]);
});

test("scripts are run with the package manager that the repository uses", async () => {
  const manifest = '{\n  "name": "x",\n  "scripts": { "test": "t" }\n}\n';
  const ask = (files: Record<string, string>) => answerIn(files, "How do I run the tests?");
  expect(await ask({ "package.json": manifest })).toContain("- `npm run test`");
  expect(await ask({ "package.json": manifest, "pnpm-lock.yaml": "a: 1\n" })).toContain("- `pnpm run test`");
  expect(await ask({ "package.json": manifest, "yarn.lock": "\n" })).toContain("- `yarn run test`");
  expect(await ask({ "package.json": manifest, "bun.lock": "{}\n" })).toContain("- `bun run test`");
  const named = manifest.replace('"name"', '"packageManager": "yarn@4.1.0", "name"');
  expect(await ask({ "package.json": named, "package-lock.json": "{}\n" })).toContain("- `yarn run test`");
  expect(await ask({ "deno.json": '{\n  "tasks": { "test": "deno test -A" }\n}\n' })).toContain("- `deno task test`");
});

test("the test to read first comes from the folder with most tests", async () => {
  const files = {
    "package.json": '{ "name": "x" }\n',
    "build/strip.test.ts": "export {};\n",
    "src/a/one.test.ts": "export {};\n",
    "src/b/two.test.ts": "export {};\n",
    "src/b/two.ts": "export {};\n",
  };
  expect(await answerIn(files, "Explain how this repository is organised")).toContain(
    "`src/a/one.test.ts` (how it is tested)",
  );
});

const routes = {
  "src/router.ts": "export function generateRoutes(): void {}\nexport const generateCookie = () => 1;\n",
  "src/middleware/jwt/jwt.ts": "export type JwtVariables = string;\n\nexport const jwt = () => 1;\n",
  "src/middleware/jwt/check.ts": 'export const message = "JWT is missing";\n',
};

test("a word matches from the beginning of a part of a name, not in its middle", async () => {
  const answer = await answerIn(routes, "Is there a rate limiter here?");
  expect(answer).toMatch(/^No\. I found nothing for `rate`, `limiter`/);
  expect(answer).not.toContain("generate");
  const limited = { ...routes, "src/limits.ts": "export class RateLimiter {}\n" };
  expect(await answerIn(limited, "Is there a rate limiter here?")).toContain("`src/limits.ts:1`");
  const joined = { ...routes, "src/limits.ts": "export const ratelimit = 1;\n" };
  expect(await answerIn(joined, "Is there a rate limiter here?")).toContain("`src/limits.ts:1`");
});

test("a definition with one word of two is no answer if other lines have both", async () => {
  const files = {
    "src/limit.ts": "export const bodyLimit = 1;\n",
    "src/combine.ts": "/**\n * import { myRateLimit } from '@/rate-limit'\n */\nexport const every = 1;\n",
  };
  const answer = await answerIn(files, "Is there a rate limiter here?");
  expect(answer).toMatch(/^I found no definition that matches `rate`, `limiter`, but 1 line in 1 file mentions both/);
  expect(answer).toMatch(/`src\/combine\.ts:1`\n.*\n.*\n2 .*myRateLimit/);
  expect(answer).not.toContain("bodyLimit");
});

test("a question about commands gets the commands, and reads only manifests", async () => {
  const files = {
    "package.json": '{ "name": "x", "scripts": { "test": "vitest" } }\n',
    "README.md": "# x\n\nIt is x.\n",
    "runtime/bun/favicon.ico": "\0\0",
    "src/a.ts": "export const a = 1;\n",
  };
  const { answer, turns } = await playIn(files, "How do I run the tests?");
  expect(answer).toMatch(/^\*\*Build and test\*\*\n- `npm run test` → `vitest` `package.json:1`\n\n/);
  expect(answer).not.toContain("**Folders");
  expect(turns.flat().join()).not.toMatch(/src\/a\.ts|favicon/);
  const overview = await playIn(files, "How is this repository organised?");
  expect(overview.turns.flat().join()).not.toContain("favicon");
});

test("a review of a commit is declined before the commits are listed", async () => {
  const answer = await answerIn({ "CHANGELOG.md": "# Changes\n\n- one\n" }, "Review my last commit");
  expect(answer).toMatch(/^I cannot do this \(“review”\)/);
  expect(await answerIn({ "CHANGELOG.md": "# Changes\n" }, "What changed?")).not.toContain("cannot do this");
});

test("piped input that went into a file is described by its beginning, and not by the note about it", async () => {
  const path = "/home/x/.troupe/session-state/1/files/piped-input-1.txt";
  const note = `The piped input (4,052,632 bytes) is in the file ${path}. Read the parts you need.`;
  const ask = (text: string) => answerIn({}, `what is it\n\n<piped_input>\n${text}\n</piped_input>`);
  const answer = await ask(`${note} It begins:\n\n{"a":1}\n{"a":2}\n{"a":`);
  expect(answer).toContain(`This is the beginning of 4,052,632 bytes; all of it is in ${path}.`);
  expect(answer).not.toContain("The piped input (");
  expect(await ask(note.replace("bytes)", "bytes of binary data)"))).toContain("4,052,632 bytes of binary data");
});

test("an acronym beside a word finds the name in small letters", async () => {
  const answer = await answerIn(routes, "Where is the JWT middleware?");
  expect(answer).toContain("by name: `src/middleware/jwt/jwt.ts:3`");
});

const module = {
  "go.mod": "module example.com/kit\n\ngo 1.22\n\nrequire github.com/spf13/pflag v1.0.5\n",
  "tools/go.mod": "module example.com/tools\n",
  "main.go": "package main\n\nfunc main() { app.run() }\n",
  ".editorconfig": "root = true\n",
  Jenkinsfile: "pipeline { agent any }\n",
};

test("a file in the root is found by its whole name, whatever its ending", async () => {
  expect(await answerIn(module, "Summarise go.mod")).toMatch(
    /^\*\*`go.mod`\*\* – 5 lines[\s\S]*module example.com\/kit/,
  );
  expect(await answerIn(module, "What is in .editorconfig?")).toMatch(/^\*\*`.editorconfig`\*\* – 1 line/);
  expect(await answerIn(module, "explain `Jenkinsfile`")).toMatch(/^\*\*`Jenkinsfile`\*\*/);
  expect(await answerIn(module, "explain app.run")).toContain("`main.go:3`");
});

test("a definition wins over a file without an ending of the same name", async () => {
  const files = { "bin/start": "#!/bin/sh\n", "src/a.ts": "export function start(): void {}\n" };
  expect(await answerIn(files, "what is `start`?")).toContain("defined at `src/a.ts:1`");
});

const limits = {
  "src/rate.ts": "export const exchangeRate = 1;\nexport const interestRate = 2;\nexport const growthRate = 3;\n",
  "src/sizes.ts": "export class SizeLimiter {}\nexport const limitOf = 1;\nexport const depthLimit = 2;\n",
};

test("words that occur nowhere together are answered with no, and at most four names", async () => {
  const answer = await answerIn(limits, "Is there a rate limiter here?");
  expect(answer).toMatch(/^No\. I found nothing that has `rate`, `limiter` together\.\n\n\*\*Nearest names\*\*\n/);
  expect(answer.match(/^- /gm)).toHaveLength(4);
  expect(await answerIn(limits, "where is the rate limiter?")).toMatch(/^I found nothing that has/);
  const noise = Array.from({ length: 200 }, (_, at) => `  use(rate, ${at});`).join("\n");
  const hidden = { "a.ts": `${noise}\n`, "z.ts": "  use(limiterOf(rate));\n" };
  expect(await answerIn(hidden, "Is there a rate limiter here?")).toContain("`z.ts:1`");
});

const shop = {
  "src/changes.ts": "export const changes = [];\nexport function testsOf(): void {}\n",
  "src/cart.ts": "export function emptyCart(): void {}\n".repeat(30),
  "src/flags.ts": "export const verboseFlag = 1;\nexport const quietFlag = 2;\n",
};

test.each(["commit my changes", "write tests", "run the tests", "fix the bug", "I feel a little tired today"])(
  "the understudy declines %j without a line of code",
  async (prompt) => {
    const { answer, modelCalls } = await playIn(shop, prompt);
    expect(answer).toMatch(/^I (?:cannot do this|did not find a question)/);
    expect(answer).not.toContain("src/ca");
    expect(answer).not.toContain("src/ch");
    expect(answer.split("\n").length).toBeLessThan(12);
    expect(modelCalls).toBeLessThanOrEqual(2);
  },
);

test("a refusal names at most five places, and only those that the prompt names", async () => {
  const named = await answerIn(shop, "refactor emptyCart");
  expect(named).toMatch(/^I cannot do this \(“refactor”\)\./);
  expect(named.match(/^- `src\/cart.ts:\d+`/gm)).toHaveLength(5);
  expect(named).not.toContain("```");
  const flag = await answerIn(shop, "add a verbose flag");
  expect(flag).toContain("`src/flags.ts:1`");
  expect(flag).not.toContain("quietFlag");
});

const diff = `diff --git a/src/sum.js b/src/sum.js
--- a/src/sum.js
+++ b/src/sum.js
@@ -1,3 +1,4 @@
-export function sum(a, b) {
+export function sum(a, b, c) {
+  // TODO: check c
   return a + b;
 }
-export function old() {}
+export function fresh() {}
`;

test.each([
  ["Review this change", "review"],
  ["Please check this diff", "check"],
  ["fix it", "fix"],
  ["Überprüfe diese Änderung", "überprüfe"],
])(
  "the understudy says what it cannot do for %j with a piped diff, then what the diff contains",
  async (question, verb) => {
    const answer = await answerIn({}, `${question}\n\n<piped_input>\n${diff}</piped_input>`);
    expect(answer.split("\n\n_understudy")[0]).toBe(
      `I cannot do this (“${verb}”): it needs a model that reasons. I can say what the text holds:

The text is a diff: ${diff.trimEnd().split("\n").length} lines, ${diff.length - 1} characters; 1 file, +3 −2.

**Files**
- \`src/sum.js\` +3 −2 (line 1)

**Names**
- added: \`fresh\`
- removed: \`old\`
- declared differently: \`sum\`

**Added lines with a reminder or a conflict**
- line 7  \`// TODO: check c\`

It changes code and no test.`,
    );
  },
);

const german =
  /^Ich bin das eingebaute Offline-Modell von troupe: .* kein Sprachmodell .* auf Englisch\. .*`troupe models`\.\n\n/;
const compose = { "src/compose.ts": "export function compose(): void {}\n", "package.json": '{ "name": "kit" }\n' };

test.each([
  ["Kannst du den Fehler beheben?", german],
  ["Was kannst du?", german],
  ["Kannst du mir helfen, den Ablauf zu verstehen?", german],
  ["Warum ist der Himmel blau?", german],
  ["バグを直してください", /^私は troupe に内蔵されたオフラインモデルです。.*英語/],
  ["空はなぜ青いのですか？", /^私は troupe に内蔵されたオフラインモデルです。/],
  ["하늘은 왜 파란가요?", /^저는 troupe에 내장된 오프라인 모델입니다\./],
  ["¿Por qué el cielo es azul?", /^Soy el modelo sin conexión integrado en troupe/],
  ["Pourquoi le ciel est-il bleu ?", /^Je suis le modèle hors ligne intégré à troupe/],
  ["Почему небо голубое?", /^Я встроенная офлайн-модель troupe/],
  ["天空为什么是蓝色的？", /^我是 troupe 内置的离线模型/],
])(
  "the understudy answers %j first with a description of itself, in the language of the question",
  async (prompt, notice) => {
    const answer = await answerIn(compose, prompt);
    expect(answer).toMatch(notice);
    expect(answer).toContain("_understudy: troupe's built-in offline model.");
  },
);

test.each([
  ["Wo ist die Funktion compose definiert?", "`compose`: defined at `src/compose.ts:1`"],
  ["composeはどこで定義されていますか？", "`compose`: defined at `src/compose.ts:1`"],
  ["Was macht dieses Repository?", "**kit**"],
  ["このリポジトリは何をしますか？", "**kit**"],
  ["where is compose defined?", "`compose`: defined at `src/compose.ts:1`"],
])("the understudy answers %j without a notice", async (prompt, start) => {
  expect((await answerIn(compose, prompt)).slice(0, 60)).toContain(start);
});
