/** `troupe blame <file>:<line>`: the agent, prompt, call and approval that wrote a line. */
import { resolve } from "node:path";
import { nodeDisk } from "../../lib/node/disk.ts";
import { systemStamp } from "../../lib/stamp.ts";
import { sanitise } from "../../lib/text.ts";
import { createRuntime } from "../../runtime/runtime.ts";
import { type Blame, blameLine } from "../../runtime/sessions/blame.ts";
import { type Arguments, usage, wantsJson } from "../args.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { jsonLine, write } from "../output/output.ts";

export async function blameCommand(given: Arguments): Promise<ExitCode> {
  const [, location = "", ...more] = given.words;
  const [, path, line] = /^(.+):(\d+)$/s.exec(location) ?? [];
  if (path === undefined || line === undefined || more.length > 0) {
    throw usage("troupe blame needs a file and a line: troupe blame src/main.ts:12");
  }
  const { home, store } = createRuntime({ environment: process.env });
  const parts = { stateRoot: home, store, disk: nodeDisk, stamp: systemStamp };
  const blame = await blameLine(resolve(path), Number(line), parts);
  await write(wantsJson(given) ? `${jsonLine(blame, process.stdout)}\n` : sanitise(textOf(blame)));
  return exitCodes.done;
}

function textOf({ path, line, text, origin }: Blame): string {
  const head = `${path}:${line}\n  ${text.trim()}\n`;
  if (!origin) return `${head}No recorded change wrote this line: it was there before, or another program wrote it.\n`;
  const { agent, agentId, sessionId, time, tool, toolCallId, command, doubt } = origin;
  const { prompt, intent, approval, facts } = origin;
  const rows: readonly (readonly [string, string | undefined])[] = [
    ["probably", doubt],
    ["agent", agentId === "" ? agent : `${agent} (${agentId})`],
    ["session", sessionId],
    ["time", time.slice(0, 19).replace("T", " ")],
    ["call", [tool, toolCallId].filter(Boolean).join(" ")],
    ["command", command],
    ["prompt", prompt],
    ["said", intent],
    ["approval", approval],
    ["facts", facts],
  ];
  const shown = rows.flatMap(([name, value]) =>
    value === undefined ? [] : [`${name.padEnd(9)} ${value.trim().replaceAll("\n", "\n          ")}`],
  );
  return `${head}${shown.join("\n")}\n`;
}
