/** What a first user met. */
import { expect, test } from "vitest";
import { drive } from "./drive.ts";
import { python, stage, typescript } from "./repositories.ts";

async function answerIn(files: Readonly<Record<string, string>>, prompt: string): Promise<string> {
  await using at = await stage(files);
  return (await drive(at.cwd, prompt, { scratch: at.scratch })).answer;
}

test("the understudy's numbers say where not every folder was searched", async () => {
  const files = Object.fromEntries(
    Array.from({ length: 2000 }, (_, index) => [`part-${index % 20}/file-${index}.ts`, "export {};\n"]),
  );
  const answer = await answerIn(files, "Explain how this repository is organised");
  expect(answer).toMatch(/of 2,000 files seen, 16 of 20 top-level folders looked at;/);
});

test("a common word is a name where the question says so", async () => {
  expect(await answerIn(python, "Where is main?")).toContain("`main`: defined at `weather/cli.py:10`");
});

test("names are not cut at letters outside ASCII", async () => {
  const files = { "a.py": "def größe():\n    return 1\n" };
  expect(await answerIn(files, "Where is größe?")).toContain("`größe`: defined at `a.py:1`");
  const overview = await answerIn(files, "Explain this repository");
  expect(overview).toContain("`größe`");
  expect(overview).not.toContain("`gr`");
});

test("the understudy shows the requested part first", async () => {
  expect(await answerIn(typescript, "how do I run the tests?")).toMatch(
    /^\*\*Build and test\*\*\n- `npm run test` → `vitest run`/,
  );
  expect(await answerIn(typescript, "List the entry points")).toMatch(/^\*\*Entry points\*\*\n- `src\/cli.ts`/);
});

test("the understudy does not search for questions that need reasoning", async () => {
  const answer = await answerIn({ "a.ts": "export const deadline = 1;\n" }, "Find dead code");
  expect(answer).toContain("I cannot find dead code: that needs reasoning");
  expect(answer).not.toContain("deadline");
});

test("binary data is counted, not quoted", async () => {
  for (const prompt of ["what?\n\n<piped_input>\nab\0cd\n</piped_input>", "ab\0cd"]) {
    const answer = await answerIn({}, prompt);
    expect(answer).toContain("binary data, 5 bytes");
    expect(answer).not.toContain("\0");
  }
});

test("a short file is shown, without a line that is not there", async () => {
  expect(await answerIn({ "a.txt": "one\ntwo\n" }, "what is in a.txt?")).toContain("1  one\n2  two\n```");
  expect(await answerIn({ "a.py": "print(1)\n" }, "Explain a.py")).toContain("1  print(1)\n```");
});

test("the understudy says in a subfolder of a repository that it searched only there", async () => {
  await using at = await stage(typescript);
  const root = at.cwd.slice(0, at.cwd.lastIndexOf("/"));
  const facts = `- Working folder: ${at.cwd}\n- Git root: ${root}\n`;
  const { answer } = await drive(at.cwd, "Where is openBook?", { scratch: at.scratch, system: facts });
  expect(answer).toContain("Only this folder, `project/` of a larger git repository, was searched.");
});

test("the output of git log is read as commits", async () => {
  const commit = (id: string, who: string, day: number, subject: string) =>
    `commit ${id.repeat(40)}\nAuthor: ${who} <x@y.z>\nDate:   Mon May ${day} 10:00:00 2026 +0000\n\n    ${subject}\n`;
  const log = [commit("a", "Ann", 11, "Fix fatal error"), commit("b", "Bo", 4, "Begin")].join("\n");
  const answer = await answerIn({}, `what is this\n\n<piped_input>\n${log}\n</piped_input>`);
  expect(answer).toContain("git log: 2 commits");
  expect(answer).toContain("From Mon May 4 10:00:00 2026 +0000 to Mon May 11 10:00:00 2026 +0000.");
  expect(answer).toContain("**2 authors:** Ann (1), Bo (1)");
  expect(answer).toContain("- line 1  `aaaaaaaa`  Fix fatal error");
  expect(answer).not.toContain("Lines that speak of errors");
});
