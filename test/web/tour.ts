/** The script of a session with three agents, used by the tests of the page and for the pictures of the documentation. */

import type { Moves } from "../../src/model/faux/faux-step.ts";
import type { HttpStep } from "../../src/testing/http-reply.ts";
import { calls, forAgent, otherwise, says, stalls } from "../../src/testing/index.ts";

export const prompt = "Trim the cells that parse returns, and check everything that uses it";

export const files = {
  "work/src/parse.ts": "export function parse(text: string) {\n  return text.split(',');\n}\n",
  "work/src/main.ts": 'import { parse } from "./parse.ts";\n\nconsole.log(parse("a, b"));\n',
};

const task = (name: string, agentType: string, words: string) =>
  ["task", { name, agent_type: agentType, description: words, prompt: `${words}.`, mode: "background" }] as const;

const of = (words: string, ...steps: Moves[]): HttpStep =>
  forAgent(
    ({ messages }) => JSON.stringify(messages.filter(({ role }) => role === "user")).includes(`${words}.`),
    ...steps,
  );

export const tour = (): HttpStep[] => [
  calls([
    "edit",
    {
      path: "src/parse.ts",
      old_str: "text.split(',')",
      new_str: "text\n    .split(',')\n    .map((cell) => cell.trim())",
    },
  ]),
  calls(
    task("find-callers", "explore", "Find all callers of parse"),
    task("write-tests", "task", "Write tests for parse"),
    task("check-docs", "explore", "Check whether the documentation mentions parse"),
  ),
  says("Three agents are at work. I report when they are done."),
  of(
    "Find all callers of parse",
    calls(["grep", { pattern: "parse" }]),
    says("There is **one** caller:\n\n- `src/main.ts:3` prints what `parse` returns\n\nIt needs no change."),
  ),
  of(
    "Write tests for parse",
    calls(["bash", { command: "npm test -- parse", description: "run the tests of parse" }]),
    says("The tests pass."),
  ),
  of("Check whether the documentation mentions parse", stalls()),
  otherwise(says("The caller in `src/main.ts` needs no change.")),
];
