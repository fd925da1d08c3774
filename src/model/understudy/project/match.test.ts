import { expect, test } from "vitest";
import { isForeign } from "./languages.ts";
import { isWordPart, matchersFor, partsOf } from "./match.ts";

const parts: readonly (readonly [word: string, part: string, matches: boolean])[] = [
  ["rate", "rate", true],
  ["rate", "rates", true],
  ["retry", "retries", true],
  ["rate", "generate", false],
  ["limiter", "limit", true],
  ["limiter", "limits", true],
  ["limiter", "unlimited", false],
  ["run", "runner", true],
  ["run", "running", true],
  ["run", "runtime", false],
  ["log", "logged", true],
  ["log", "login", false],
  ["ошибк", "сообщениеошибки", true],
];

test.each(parts)("the word %j matches the part %j: %s", (word, part, matches) => {
  expect(isWordPart(word, part)).toBe(matches);
});

test("names are split into parts at case, underscores and other signs", () => {
  expect(partsOf("rateLimit(MAX_RETRIES, HTTPServer) // src/jwt.ts")).toEqual(
    "rate limit max retries http server src jwt ts".split(" "),
  );
});

test("two neighbouring words match a part that writes them as one", () => {
  const [rate, limiter] = matchersFor([
    { text: "rate", kind: "word" },
    { text: "limiter", kind: "word" },
  ]);
  expect([rate?.test("const ratelimit = 1;"), limiter?.test("const ratelimit = 1;")]).toEqual([true, true]);
  expect([rate?.test("generateRoutes()"), limiter?.test("generateRoutes()")]).toEqual([false, false]);
});

test("a name matches only as a whole", () => {
  const [matcher] = matchersFor([{ text: "runLoop", kind: "name" }]);
  expect(["runLoop(1)", "run_loop", "rerunLoop", "runLoops"].map((text) => matcher?.test(text))).toEqual([
    true,
    true,
    false,
    false,
  ]);
});

test.each(["bun.lock", "bun.lockb", "deno.lock", "a/package-lock.json", "node_modules/x/y.js"])(
  "the understudy does not count %s as a file of the project",
  (path) => {
    expect(isForeign(path)).toBe(true);
  },
);

test("the understudy counts files of the project as its own", () => {
  expect(["src/lock.ts", "deno.json", "go.mod", "bun.lock.md"].filter(isForeign)).toEqual([]);
});
