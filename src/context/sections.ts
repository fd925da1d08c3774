/** The system prompt as named sections, and what a program that starts a session may do to each of them. */
import { TroupeError } from "../protocol/errors.ts";
import type { SectionOverride, SystemMessageConfig } from "./system-message.ts";

/** In the order of the prompt: what is the same everywhere stands first, so that prompt caches can share it. */
const sectionOrder = [
  "preamble",
  "tone",
  "tool_efficiency",
  "code_change_rules",
  "guidelines",
  "safety",
  "tool_instructions",
  "environment_context",
  "custom_instructions",
  "memories",
  "runtime_instructions",
  "last_instructions",
] as const;

type SectionId = (typeof sectionOrder)[number];

/** `identity` names these together. */
const GROUP_ID = "identity";
const groupMembers: readonly SectionId[] = ["preamble", "tone", "tool_efficiency"];

export const sectionIds: readonly string[] = [GROUP_ID, ...sectionOrder];

/** The text of each section; a missing or empty one is left out of the prompt. */
export type PromptParts = Readonly<Partial<Record<SectionId, string>>>;

/** Asks whoever configured it for the new text of sections; a section missing in the answer stays as it is. */
export type SectionTransform = (sections: Record<string, string>) => Promise<Record<string, string>>;

const MAX_SECTION_BYTES = 64 * 1024;
const MAX_CONTENT_BYTES = 256 * 1024;
const MAX_OVERRIDES = 64;

/** The whole prompt. Sections with the action `transform` that have a text are asked for in one call. */
export async function assemblePrompt(
  parts: PromptParts,
  config: SystemMessageConfig = {},
  transform?: SectionTransform,
): Promise<string> {
  if (config.mode === "replace") return assembleUnasked(parts, config);
  const draft = draftOf(parts, config);
  const wanted = Object.fromEntries(
    [...draft.overrides].flatMap(([id, { action }]) => {
      const text =
        id === GROUP_ID ? joined(groupMembers.map((member) => draft.texts.get(member))) : draft.texts.get(id);
      return action === "transform" && text ? [[id, text]] : [];
    }),
  );
  const isAsked = transform !== undefined && Object.keys(wanted).length > 0;
  const answer = new Map(isAsked ? Object.entries(await transform(wanted)) : []);
  for (const id of Object.keys(wanted)) requireSize(`sections.${id}`, answer.get(id), MAX_SECTION_BYTES);
  return finished(draft, new Map([...answer].filter(([id]) => id in wanted)));
}

/** The same where nobody can be asked: sections to be transformed stay as they are. */
export function assembleUnasked(parts: PromptParts, config: SystemMessageConfig = {}): string {
  requireSize("content", config.content, MAX_CONTENT_BYTES);
  return config.mode === "replace" ? config.content : finished(draftOf(parts, config), new Map());
}

interface Draft {
  /** Known ids alone. */
  readonly overrides: ReadonlyMap<string, SectionOverride>;
  readonly texts: ReadonlyMap<string, string>;
  /** What stands behind all sections. */
  readonly extra: readonly (string | undefined)[];
}

function draftOf(parts: PromptParts, config: Exclude<SystemMessageConfig, { mode: "replace" }>): Draft {
  requireSize("content", config.content, MAX_CONTENT_BYTES);
  const given = config.mode === "customize" ? Object.entries(config.sections ?? {}) : [];
  if (given.length > MAX_OVERRIDES) {
    throw new TroupeError("usage", `systemMessage.sections has ${given.length} members; ${MAX_OVERRIDES} are allowed.`);
  }
  for (const [id, { content }] of given) requireSize(`sections.${id.slice(0, 60)}`, content, MAX_SECTION_BYTES);
  const isKnown = ([id]: readonly [string, unknown]): boolean => sectionIds.includes(id);
  const overrides = new Map(given.filter(isKnown));
  const strangers = given.filter((entry) => !isKnown(entry) && entry[1].action !== "remove");
  return {
    overrides,
    texts: new Map(sectionOrder.map((id) => [id, overridden(parts[id] ?? "", overrides.get(id))])),
    extra: [...strangers.map(([, { content }]) => content), config.content],
  };
}

function overridden(text: string, override: SectionOverride | undefined): string {
  const content = override?.content ?? "";
  switch (override?.action) {
    case "replace":
      return content;
    case "remove":
      return "";
    case "append":
      return joined([text, content]);
    case "prepend":
      return joined([content, text]);
    case "preserve":
    case "transform":
    case undefined:
      return text;
  }
}

function finished({ overrides, texts, extra }: Draft, answer: ReadonlyMap<string, string>): string {
  const textOf = (id: SectionId): string | undefined => answer.get(id) ?? texts.get(id);
  const group = overrides.get(GROUP_ID);
  const isTaken = group?.action === "replace" || group?.action === "remove";
  // What is said of a member itself counts more than what is said of its group.
  const members = groupMembers.filter((id) => !isTaken || overrides.has(id)).map(textOf);
  const identity = isTaken
    ? joined([group.content && group.action === "replace" ? group.content : "", ...members])
    : "";
  return joined([
    answer.get(GROUP_ID) ?? (isTaken ? identity : overridden(joined(members), group)),
    ...sectionOrder.filter((id) => !groupMembers.includes(id)).map(textOf),
    ...extra,
  ]);
}

function joined(texts: readonly (string | undefined)[]): string {
  return texts.filter(Boolean).join("\n\n");
}

function requireSize(what: string, text: string | undefined, maxBytes: number): void {
  const bytes = Buffer.byteLength(text ?? "");
  if (bytes <= maxBytes) return;
  throw new TroupeError("usage", `systemMessage.${what} has ${bytes} bytes; at most ${maxBytes} are allowed.`, {
    hint: "Put long material into files and let the agent read them.",
  });
}
