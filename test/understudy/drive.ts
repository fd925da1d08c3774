/** A loop of thirty lines around the understudy: the real tools, the real limit on what they return. */
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { ModelRequest } from "../../src/model/provider.ts";
import { understudy } from "../../src/model/understudy/understudy.ts";
import type { Message, ToolCall } from "../../src/protocol/message.ts";
import { boundOutput, LARGE_OUTPUT_BYTES } from "../../src/session/turn/large-output.ts";
import type { Tasks } from "../../src/tools/agents/task-port.ts";
import { builtinTools } from "../../src/tools/builtin.ts";
import type { Tool } from "../../src/tools/tool.ts";

export interface Played {
  readonly answer: string;
  readonly modelCalls: number;
  /** Tool calls per turn, as `name argument`. */
  readonly turns: readonly (readonly string[])[];
  readonly messages: readonly Message[];
}

interface DriveOptions {
  readonly tools?: readonly Tool[];
  readonly history?: readonly Message[];
  readonly scratch?: string;
  readonly system?: string;
  /** Who starts other agents. */
  readonly tasks?: Tasks;
}

export async function drive(cwd: string, prompt: string, options: DriveOptions = {}): Promise<Played> {
  const tools = options.tools ?? builtinTools;
  const scratch = options.scratch ?? join(cwd, "..", "scratch");
  const messages: Message[] = [...(options.history ?? []), { role: "user", content: prompt }];
  const turns: string[][] = [];
  const signal = new AbortController().signal;
  for (let modelCalls = 1; modelCalls <= 12; modelCalls++) {
    const { text, calls } = await askOnce(
      { model: "understudy", system: options.system ?? `- Working folder: ${cwd}`, messages, tools, stream: true },
      signal,
    );
    messages.push({ role: "assistant", content: text, calls });
    if (calls.length === 0) return { answer: text, modelCalls, turns, messages };
    turns.push(calls.map((call) => `${call.name} ${JSON.stringify(call.arguments)}`));
    messages.push(
      ...(await Promise.all(calls.map((call) => runCall(call, { tools, cwd, scratch, tasks: options.tasks })))),
    );
  }
  throw new Error("The understudy asked for tools twelve times.");
}

async function askOnce(request: ModelRequest, signal: AbortSignal): Promise<{ text: string; calls: ToolCall[] }> {
  let text = "";
  const calls: ToolCall[] = [];
  for await (const event of understudy().stream(request, signal)) {
    if (event.type === "text") text += event.delta;
    if (event.type === "call") calls.push(event.call);
    if (event.type === "end" && event.error !== undefined) throw event.error;
  }
  return { text, calls };
}

async function runCall(
  call: ToolCall,
  place: { tools: readonly Tool[]; cwd: string; scratch: string; tasks: Tasks | undefined },
): Promise<Message> {
  const tool = place.tools.find((one) => one.name === call.name);
  const { toolCallId } = call;
  if (tool === undefined)
    return { role: "tool", toolCallId, content: `Tool '${call.name}' does not exist.`, isError: true };
  try {
    const roots = [place.cwd, place.scratch];
    const signal = new AbortController().signal;
    const ports = place.tasks === undefined ? {} : { tasks: place.tasks };
    const result = await tool
      .bind(call.arguments)
      .run({ cwd: place.cwd, roots, toolCallId, signal, progress: () => {}, ...ports });
    const log = {
      async writeFile(name: string, content: string) {
        const path = join(place.scratch, `${toolCallId}-${name}`);
        await mkdir(dirname(path), { recursive: true });
        await writeFile(path, content);
        return path;
      },
    };
    const content = await boundOutput({
      content: result.content,
      toolName: call.name,
      maxBytes: LARGE_OUTPUT_BYTES,
      log,
      readers: ["view", "grep"],
    });
    return { role: "tool", toolCallId, content, isError: false };
  } catch (error) {
    return { role: "tool", toolCallId, content: error instanceof Error ? error.message : String(error), isError: true };
  }
}
