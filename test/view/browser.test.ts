import { runInNewContext } from "node:vm";
import { build } from "esbuild";
import { expect, it } from "vitest";
import { SessionView } from "../../src/view/session-view.ts";
import { recordings } from "./recorded.ts";

const ENTRY = `
  import { SessionView } from "./src/view/session-view.ts";
  import { agentRows } from "./src/view/agent-rows.ts";
  import { Replay } from "./src/view/replay.ts";
  import { openAttention, waitChain, waitText } from "./src/view/waits.ts";
  export function fold(text) {
    const made = new SessionView();
    for (const event of JSON.parse(text)) {
      made.apply(event);
      agentRows(made.view);
      waitText(waitChain(made.view));
      openAttention(made.view);
    }
    return JSON.stringify([made.view.main, [...made.view.agents.values()], new Replay(JSON.parse(text)).at(9).view.sequence]);
  }
`;

it("the view is bundled for a browser without Node or zod, and folds a log there as here", async () => {
  const { outputFiles } = await build({
    stdin: { contents: ENTRY, resolveDir: process.cwd(), loader: "ts" },
    bundle: true,
    write: false,
    minify: true,
    platform: "browser",
    format: "iife",
    globalName: "view",
  });
  const code = outputFiles[0]?.text ?? "";
  // Without schemas: a page loads what it needs and no more.
  expect(code.length).toBeLessThan(60_000);
  // A fresh context has the language and nothing of Node.
  const context = runInNewContext(`${code}; view`, {}) as { fold(text: string): string };
  for (const { events } of await recordings()) {
    const here = new SessionView();
    for (const event of events) here.apply(event);
    const [main, agents, sequence] = JSON.parse(context.fold(JSON.stringify(events))) as unknown[];
    expect([main, agents]).toEqual(JSON.parse(JSON.stringify([here.view.main, [...here.view.agents.values()]])));
    expect(sequence).toBe(9);
  }
});
