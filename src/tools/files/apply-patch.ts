import * as z from "zod";
import {
  accessFor,
  type ChangeRequest,
  type CurrentFile,
  changeFiles,
  missing,
  type Planned,
  refuseStale,
  refuseUnread,
} from "../edit/change-files.ts";
import { parsePatch } from "../edit/parse-patch.ts";
import type { PatchStep } from "../edit/patch.ts";
import { applyHunks } from "../edit/patch-apply.ts";
import { decodeText, encodeText } from "../edit/text-content.ts";
import { defineTool, fixed } from "../tool.ts";
import { ToolError } from "../tool-error.ts";
import description from "./apply-patch.md";
import type { Files } from "./files.ts";

const input = fixed("apply_patch", () => z.object({ patch: z.string().describe("The whole patch") }));

export const applyPatch = defineTool({
  name: "apply_patch",
  accessKind: "write",
  modes: ["interactive", "autopilot"],
  description,
  input,
  access: ({ patch }, context) => accessFor(requestOf(parsePatch(patch), []), context),
  async run({ patch }, context) {
    const notes: string[] = [];
    const { planned, diff } = await changeFiles(requestOf(parsePatch(patch), notes), context);
    const lines = ["Patch applied:", ...planned.flatMap(describe), ...notes.map((note) => `Note: ${note}`)];
    return { content: lines.join("\n"), detailedContent: diff };
  },
});

function requestOf(steps: readonly PatchStep[], notes: string[]): ChangeRequest {
  return {
    intention: "Apply a patch",
    shownBy: "apply_patch",
    paths: steps.flatMap((step) =>
      step.kind === "update" && step.moveTo !== undefined ? [step.path, step.moveTo] : [step.path],
    ),
    async plan(look, files) {
      const plan = new Map<string, Planned>();
      for (const step of steps) await planStep(step, { plan, look, files, notes });
      const changed = [...plan.values()].filter(isChange);
      if (changed.length === 0) throw new ToolError("The patch changes nothing: the files already have this content.");
      // Deletions come last, so that content always exists in some file, even if the process stops in between.
      return changed.sort((one, other) => Number(one.after === "missing") - Number(other.after === "missing"));
    },
  };
}

interface PatchContext {
  /** By real path; several steps may name the same file. */
  readonly plan: Map<string, Planned>;
  readonly look: (path: string) => Promise<CurrentFile>;
  readonly files: Files;
  readonly notes: string[];
}

async function planStep(step: PatchStep, planning: PatchContext): Promise<void> {
  const { plan, look, files } = planning;
  const found = await look(step.path);
  const content = contentSoFar(found, plan);
  if (step.kind === "add") {
    if (content !== "missing")
      throw new ToolError(`${found.path} already exists; the patch must update it, not add it.`);
    plan.set(found.realPath, { found, after: encodeText(step.text) });
    return;
  }
  if (content === "missing") throw missing(found.path);
  if (step.kind === "delete" && step.hunks.length === 0) refuseUnread(found, files);
  else refuseStale(found, files);
  const after = step.hunks.length === 0 ? content : patchContent(content, { step, found, notes: planning.notes });
  if (step.kind === "delete") {
    if (step.hunks.length > 0 && after.length > 0) {
      throw new ToolError(`${found.path} has more content than the patch deletes. Nothing was changed.`);
    }
    plan.set(found.realPath, { found, after: "missing" });
  } else if (step.moveTo === undefined) {
    plan.set(found.realPath, { ...plan.get(found.realPath), found, after });
  } else {
    const target = await look(step.moveTo);
    if (target.realPath === found.realPath || contentSoFar(target, plan) !== "missing") {
      throw new ToolError(
        `${found.path} cannot be moved to ${target.path}, which already exists. Nothing was changed.`,
      );
    }
    plan.set(target.realPath, { found: target, after, movedFrom: found });
    plan.set(found.realPath, { found, after: "missing" });
  }
}

function contentSoFar(found: CurrentFile, plan: PatchContext["plan"]): "missing" | Buffer {
  const planned = plan.get(found.realPath);
  if (planned) return planned.after;
  return found.before === "missing" ? "missing" : found.before.content;
}

function patchContent(
  content: Buffer,
  { step, found, notes }: { step: Exclude<PatchStep, { kind: "add" }>; found: CurrentFile; notes: string[] },
): Buffer {
  const result = applyHunks(decodeText(content, found.path), { hunks: step.hunks, path: found.path });
  notes.push(...result.notes);
  return encodeText(result.text);
}

function isChange({ found, after }: Planned): boolean {
  if (found.before === "missing" || after === "missing") return found.before !== after;
  return !found.before.content.equals(after);
}

function describe({ found, after, movedFrom }: Planned, _index: number, all: readonly Planned[]): string[] {
  if (movedFrom) return [`moved ${movedFrom.path} to ${found.path}`];
  if (after !== "missing") return [`${found.before === "missing" ? "created" : "updated"} ${found.path}`];
  const isMoved = all.some((other) => other.movedFrom?.realPath === found.realPath);
  return isMoved ? [] : [`deleted ${found.path}`];
}
