/** Tools with which an agent uses the canvases of client programs. Offered while a client shows canvases. */
import * as z from "zod";
import type { Json } from "../../lib/json.ts";
import { defineTool, type Tool } from "../../tools/tool.ts";
import { ToolError, type ToolResult } from "../../tools/tool-error.ts";
import { canvasToolNames } from "./canvas-tool-names.ts";
import { asData } from "./external-tools.ts";
import invokeText from "./invoke-canvas-action.md";
import listText from "./list-canvas-capabilities.md";
import openText from "./open-canvas.md";

/** The connection to the clients that have canvases. Its errors are worded for the caller. */
export interface CanvasPort {
  list(): { readonly canvases: readonly object[]; readonly open: readonly object[] };
  open(
    request: {
      readonly canvasId: string;
      readonly extensionId?: string | undefined;
      readonly instanceId: string;
      readonly input?: Json;
    },
    signal: AbortSignal,
  ): Promise<object>;
  act(
    request: { readonly instanceId: string; readonly actionName: string; readonly input?: Json },
    signal: AbortSignal,
  ): Promise<Json>;
  /** Returns the extension that shows this instance, if it is one. Output of extensions is treated as data. */
  extensionOf(instanceId: string): string | undefined;
}

const ACTION_MS = 10 * 60_000;

export function canvasTools(port: CanvasPort): readonly Tool[] {
  const name = z.string().min(1).max(200);
  // A schema for any value would refer to itself, which not every model can read.
  const input = z.looseObject({}).optional().describe("What it is given, as its schema says");
  return [
    defineTool({
      name: "list_canvas_capabilities",
      description: listText,
      input: z.object({}),
      readOnly: true,
      run: async () => ({ content: JSON.stringify(port.list(), null, 2) }),
    }),
    defineTool({
      name: canvasToolNames.open,
      description: openText,
      input: z.object({
        canvas_id: name.describe("As list_canvas_capabilities names it"),
        instance_id: name.describe("Your name for what is opened; a name that is open already brings it to the front"),
        extension_id: name.optional().describe("Whose it is, where several have a canvas of this name"),
        input,
      }),
      access: (request) => questionOf(canvasToolNames.open, openText, request),
      run: async (request, { signal }) => {
        const { canvas_id: canvasId, instance_id: instanceId, extension_id: extensionId } = request;
        const answer = await failing(port.open({ canvasId, instanceId, extensionId, ...given(request) }, signal));
        return resultOf(answer, { name: canvasToolNames.open, extension: port.extensionOf(instanceId) });
      },
    }),
    defineTool({
      name: canvasToolNames.act,
      description: invokeText,
      input: z.object({
        instance_id: name.describe("What was opened"),
        action_name: name.describe("One of its canvas's actions"),
        input,
      }),
      timeoutMs: ACTION_MS,
      access: (request) => questionOf(canvasToolNames.act, invokeText, request),
      run: async (request, { signal }) => {
        const { instance_id: instanceId, action_name: actionName } = request;
        const whose = { name: canvasToolNames.act, extension: port.extensionOf(instanceId) };
        return resultOf(await failing(port.act({ instanceId, actionName, ...given(request) }, signal)), whose);
      },
    }),
  ];
}

const questionOf = (toolName: string, toolDescription: string, args: unknown) =>
  ({ kind: "custom-tool", toolName, toolDescription, args: z.json().parse(args) }) as const;

const given = ({ input }: { input?: unknown }): { input?: Json } =>
  input === undefined ? {} : { input: z.json().parse(input) };

function resultOf(answer: unknown, { name, extension }: { name: string; extension: string | undefined }): ToolResult {
  const result = { content: typeof answer === "string" ? answer : JSON.stringify(answer) };
  return extension === undefined ? result : asData(result, { name, extension });
}

/** Turns any error of a client into a tool error: it is not a defect of ours. */
async function failing<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (cause) {
    throw new ToolError(cause instanceof Error ? cause.message : String(cause), { cause });
  }
}
