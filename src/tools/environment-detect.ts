import * as z from "zod";
import type { Environments } from "./coordination/environment.ts";
import description from "./environment-detect.md";
import { defineTool, type Tool } from "./tool.ts";

/** For coordinated workers: facts they need before they run commands. */
export function environmentDetectTool(environments: Environments): Tool {
  return defineTool({
    name: "environment_detect",
    description,
    input: z.object({}),
    readOnly: true,
    async run(_given, { cwd }) {
      return { content: JSON.stringify(environments.detect(cwd)) };
    },
  });
}
