import { describe, expect, it } from "vitest";
import { createRuntime } from "../../src/runtime/runtime.ts";
import { requireKnown } from "../../src/runtime/setup/tool-choice.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import {
  agentTools,
  autopilotTools,
  boardTools,
  builtinTools,
  coordinationTools,
  inboxTools,
  interactiveTools,
  optionalToolNames,
  searchTools,
} from "../../src/tools/builtin.ts";

describe("a list of tools", () => {
  it("a list of tools may name a built-in tool that the session lacks, such as web_search", async () => {
    await using folder = await tempFolder();
    const runtime = createRuntime({ environment: {}, home: folder.at("home") });
    const toolChoice = { excluded: ["web_search", "builtin:store_memory", "task_complete"] };
    const session = await runtime.createSession({
      cwd: folder.path,
      model: { name: "understudy" },
      tools: { choice: toolChoice },
    });
    expect(session.mainAgent.prompt.tools.map(({ name }) => name)).not.toContain("web_search");
    await session.close();
    const wrong = { cwd: folder.path, model: { name: "understudy" }, tools: { choice: { excluded: ["web_serch"] } } };
    await expect(runtime.createSession(wrong)).rejects.toThrow('names "web_serch", which does not exist');
    await runtime.close();
  });

  it("a list of tools may name every built-in tool that not every session has", () => {
    const source = { agents: () => [] };
    const listed = [
      ...[...searchTools, ...autopilotTools, ...interactiveTools, ...boardTools, ...inboxTools],
      ...agentTools.map((make) => make(source)),
      ...coordinationTools.map((make) => make({})),
    ].map(({ name }) => name);
    expect(listed.filter((name) => !optionalToolNames.includes(name))).toEqual([]);
    expect(() => requireKnown(builtinTools, { available: [...optionalToolNames] })).not.toThrow();
  });
});
