import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { agentMemory } from "../../src/context/memory/agent-memory.ts";
import { contentProblem } from "../../src/context/memory/content.ts";
import { injectedMemory } from "../../src/context/memory/injected.ts";
import { createRedactor, REDACTED } from "../../src/lib/redact/redact.ts";
import { numbers, plantedSecrets } from "./planted-secrets.ts";

const redactor = createRedactor({ values: [] });
const planted = plantedSecrets(20261116);

/** How a text may come along: as it is, as a string inside JSON, in pieces, as data. */
const routes: Readonly<Record<string, (text: string) => string>> = {
  "a line of output": (text) => redactor.text(`$ run\n${text}\ndone\n`),
  "a string in JSON": (text) => redactor.text(JSON.stringify({ path: "a.txt", output: `first\n${text}\nlast` })),
  "a stream of small pieces": (text) => {
    const next = numbers(text.length);
    const stream = redactor.stream();
    let passed = "";
    for (let at = 0; at < text.length; ) {
      const size = 1 + Math.floor(next() * 7);
      passed += stream.push(text.slice(at, at + size));
      at += size;
    }
    return passed + stream.end();
  },
  "data of an event": (text) => JSON.stringify(redactor.json({ result: [{ content: `\u001b[32m${text}\u001b[0m` }] })),
};

describe("E02: credentials of every shape", () => {
  it("the corpus of credentials has more than fifty shapes, two hundred in all", () => {
    const shapes = new Set(planted.map(({ shape }) => shape));
    expect(shapes.size).toBeGreaterThanOrEqual(50);
    expect(planted.length * Object.keys(routes).length).toBeGreaterThanOrEqual(200);
  });

  it.each(Object.entries(routes))("E02: credentials of every shape do not survive as %s", (_, route) => {
    const survivors = planted.filter(({ text, secret }) => {
      const shown = route(text);
      const parts = secret.split("\n").filter((line) => !line.startsWith("-----"));
      return !REDACTED.test(shown) || parts.some((part) => shown.includes(part.slice(-24)));
    });
    expect(survivors.map(({ shape, text }) => `${shape}: ${text}`)).toEqual([]);
  });

  it("E02: key blocks do not survive when they are cut short, numbered or in a diff", () => {
    const key = planted.find(({ shape }) => shape === "RSA PRIVATE KEY")?.text ?? "";
    const lines = key.split("\n");
    const ways = [
      lines.slice(0, 6).join("\n"),
      lines.map((line, index) => `${index + 1}. ${line}`).join("\n"),
      lines.map((line) => `-${line}`).join("\n"),
      lines.map((line) => `+${line}`).join("\n"),
    ];
    for (const way of ways) expect(redactor.text(way)).not.toContain(lines[3]);
  });
});

describe("ordinary text", () => {
  it("ordinary text loses at most one part in ten thousand lines to a false alarm", () => {
    const roots = ["src", "test", "docs", "node_modules/zod/src", "node_modules/vite/dist", "node_modules/@types/node"];
    let lines = 0;
    const alarms: string[] = [];
    for (const root of roots) {
      for (const name of readdirSync(root, { recursive: true, encoding: "utf8" })) {
        if (lines > 90_000 || !/\.(?:ts|js|mjs|json|md)$/.test(name)) continue;
        const text = readFileSync(join(root, name), "utf8").replaceAll("[redacted:", "[gone:");
        lines += text.split("\n").length;
        alarms.push(...(redactor.text(text).match(/.{0,80}\[redacted:[\w.-]+\]/g) ?? []));
      }
    }
    const ours = alarms.filter((alarm) => !alarm.includes("redacted:url-password")); // those are what they look like
    expect(lines).toBeGreaterThan(50_000);
    expect(ours.length, ours.join("\n")).toBeLessThanOrEqual(lines / 10_000);
    expect(alarms.length, alarms.join("\n")).toBeLessThanOrEqual(lines / 5_000);
  });

  it("ordinary facts are stored unchanged: at most one line in ten thousand is masked or refused", () => {
    const memory = agentMemory({
      store: () => injectedMemory(),
      redactor,
      sessionId: "session-1",
      isApproved: () => false,
    });
    const lines = readdirSync("src", { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".ts"))
      .flatMap((name) => readFileSync(join("src", name), "utf8").split("\n"))
      .map((line) => line.replaceAll("[redacted:", "[gone:").trim())
      .filter((line) => line.length > 10);
    const alarms = lines.filter((fact) => {
      const given = { subject: "code", fact: fact.slice(0, 480), citations: fact, reason: fact };
      return memory.filter(given) !== given || contentProblem(given, redactor) === "it contains a secret";
    });
    expect(lines.length).toBeGreaterThan(10_000);
    expect(alarms.length, alarms.join("\n")).toBeLessThanOrEqual(lines.length / 10_000);
  });

  it.each([
    "const token = await readToken(process.env.API_TOKEN);",
    'password: z.string().min(8), // "password": "changeme"',
    "if (token === undefined) throw new TokenError(reason, { tokenKind: kind2 });",
    "apiKey: config.providers.openai.apiKey,",
    "secret: '{{ secrets.NPM_TOKEN }}'",
    "postgres://postgres:postgres@localhost:5432/app",
    "https://user:password@example.com/",
    "export ANTHROPIC_API_KEY=sk-ant-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "integrity sha512-cmVmd0123456789abcdefABCDEF0123456789abcdefABCDEF0123456789abcdef==",
    "commit 4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    "token_type: bearer, expires_in: 3600",
    "the bearer of this message, basic authentication and tokens: 1234",
    "passwordField2.value = accountKeyName1",
  ])("an ordinary line is not changed: %s", (line) => {
    expect(redactor.text(line)).toBe(line);
  });
});
