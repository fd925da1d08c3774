import { ToolError } from "../tool-error.ts";
import type { PatchStep } from "./patch.ts";
import { parseEnvelope } from "./patch-envelope.ts";
import { parseUnified } from "./patch-unified.ts";

const MAX_PATCH_CHARACTERS = 10 * 1024 * 1024;
const MAX_STEPS = 200;

export function parsePatch(patch: string): PatchStep[] {
  if (patch.length > MAX_PATCH_CHARACTERS) throw new ToolError("The patch is larger than 10 MiB. Send it in parts.");
  const lines = patch.split(/\r?\n/);
  const begin = lines.findIndex((line) => line.trim() === "*** Begin Patch");
  const steps = begin === -1 ? parseUnified(lines) : parseEnvelope(lines, begin + 1);
  if (steps.length === 0) {
    const forms = "It begins with `*** Begin Patch`, or with `--- a/file` and `+++ b/file`.";
    throw new ToolError(`The patch names no file to change. ${forms}`);
  }
  if (steps.length > MAX_STEPS)
    throw new ToolError(`The patch changes more than ${MAX_STEPS} files. Send it in parts.`);
  return steps;
}
