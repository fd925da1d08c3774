/** The system prompt as named sections, and the overrides that a host program may apply to them. */
import { TroupeError } from "../protocol/errors.ts";
import type { SectionOverride, SystemMessageConfig } from "./system-message.ts";

/** In prompt order. Sections that are the same everywhere come first, so that prompt caches can share them. */
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

/** The id for these sections as a group. */
const GROUP_ID = "identity";
const groupMembers: readonly SectionId[] = ["preamble", "tone", "tool_efficiency"];

export const sectionIds: readonly string[] = [GROUP_ID, ...sectionOrder];

/** The text of each section. Missing and empty sections are omitted from the prompt. */
export type PromptParts = Readonly<Partial<Record<SectionId, string>>>;

/** Asks the host program for the new text of sections. A section missing in the reply stays unchanged. */
export type SectionTransform = (sections: Record<string, string>) => Promise<Record<string, string>>;

const MAX_SECTION_BYTES = 64 * 1024;
const MAX_CONTENT_BYTES = 256 * 1024;
const MAX_OVERRIDES = 64;

/** Returns the whole prompt. Requests all non-empty sections with the action `transform` in one call. */
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
        id === GROUP_ID ? joinTexts(groupMembers.map((member) => draft.texts.get(member))) : draft.texts.get(id);
      return action === "transform" && text ? [[id, text]] : [];
    }),
  );
  const isAsked = transform !== undefined && Object.keys(wanted).length > 0;
  const answer = new Map(isAsked ? Object.entries(await transform(wanted)) : []);
  for (const id of Object.keys(wanted)) requireSize(`sections.${id}`, answer.get(id), MAX_SECTION_BYTES);
  return renderSections(draft, new Map([...answer].filter(([id]) => id in wanted)));
}

/** Returns the whole prompt without a call to the host: sections with the action `transform` stay unchanged. */
export function assembleUnasked(parts: PromptParts, config: SystemMessageConfig = {}): string {
  requireSize("content", config.content, MAX_CONTENT_BYTES);
  return config.mode === "replace" ? config.content : renderSections(draftOf(parts, config), new Map());
}

interface Draft {
  /** Overrides of known sections only. */
  readonly overrides: ReadonlyMap<string, SectionOverride>;
  readonly texts: ReadonlyMap<string, string>;
  /** Texts after all sections. */
  readonly extra: readonly (string | undefined)[];
}

function draftOf(parts: PromptParts, config: Exclude<SystemMessageConfig, { mode: "replace" }>): Draft {
  requireSize("content", config.content, MAX_CONTENT_BYTES);
  const given = config.mode === "customize" ? Object.entries(config.sections ?? {}) : [];
  if (given.length > MAX_OVERRIDES) {
    throw new TroupeError(
      "usage",
      `systemMessage.sections has ${given.length} members; at most ${MAX_OVERRIDES} are allowed.`,
    );
  }
  for (const [id, { content }] of given) requireSize(`sections.${id.slice(0, 60)}`, content, MAX_SECTION_BYTES);
  const isKnown = ([id]: readonly [string, unknown]): boolean => sectionIds.includes(id);
  const overrides = new Map(given.filter(isKnown));
  const unknownSections = given.filter((entry) => !isKnown(entry) && entry[1].action !== "remove");
  return {
    overrides,
    texts: new Map(sectionOrder.map((id) => [id, overridden(parts[id] ?? "", overrides.get(id))])),
    extra: [...unknownSections.map(([, { content }]) => content), config.content],
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
      return joinTexts([text, content]);
    case "prepend":
      return joinTexts([content, text]);
    case "preserve":
    case "transform":
    case undefined:
      return text;
  }
}

function renderSections({ overrides, texts, extra }: Draft, answer: ReadonlyMap<string, string>): string {
  const textOf = (id: SectionId): string | undefined => answer.get(id) ?? texts.get(id);
  const group = overrides.get(GROUP_ID);
  const isTaken = group?.action === "replace" || group?.action === "remove";
  // An override of a member takes precedence over one of its group.
  const members = groupMembers.filter((id) => !isTaken || overrides.has(id)).map(textOf);
  const identity = isTaken
    ? joinTexts([group.content && group.action === "replace" ? group.content : "", ...members])
    : "";
  return joinTexts([
    answer.get(GROUP_ID) ?? (isTaken ? identity : overridden(joinTexts(members), group)),
    ...sectionOrder.filter((id) => !groupMembers.includes(id)).map(textOf),
    ...extra,
  ]);
}

function joinTexts(texts: readonly (string | undefined)[]): string {
  return texts.filter(Boolean).join("\n\n");
}

function requireSize(what: string, text: string | undefined, maxBytes: number): void {
  const bytes = Buffer.byteLength(text ?? "");
  if (bytes <= maxBytes) return;
  throw new TroupeError("usage", `systemMessage.${what} has ${bytes} bytes; at most ${maxBytes} are allowed.`, {
    hint: "Put long material into files and let the agent read them.",
  });
}
