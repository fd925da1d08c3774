/** Parses the summary that a model wrote into one format, whatever the model made of the request. */
import { quotedInSummary, wrapInTag } from "../lib/quoting.ts";
import { sectionsOf, summarySections } from "../lib/summary-sections.ts";
import { clip } from "../lib/text.ts";

/** State that is added to the summary because no model is trusted to remember it. */
export interface CarriedState {
  readonly todos?: string;
  readonly agents?: string;
  readonly plan?: string;
  /** The full text of the last skill used, and the paths of the others. */
  readonly skills?: string;
}

export interface Summary {
  readonly title: string;
  /** All sections in their tags, then the added state. */
  readonly content: string;
}

const MAX_TITLE_CHARACTERS = 80;
const MAX_STATE_CHARACTERS = 6_000;

/** Returns `undefined` if the text is empty. */
export function readSummary(
  text: string,
  options: { readonly carriedState: CarriedState; readonly maxCharacters: number },
): Summary | undefined {
  const found = sectionsOf(text);
  const overview = found.overview ?? withoutTags(text);
  if (overview === "") return undefined;
  const title = clip(oneLine(found.checkpoint_title ?? overview), MAX_TITLE_CHARACTERS);
  const written = { ...found, overview, history: found.history ?? "(not told)", checkpoint_title: title };
  const beside = stateBlocks(options.carriedState);
  const room = Math.max(0, options.maxCharacters - beside.reduce((sum, block) => sum + block.length + 2, 0));
  const names = summarySections.filter((name) => (written[name] ?? "") !== "");
  const perSection = fairShare(
    names.map((name) => quotedInSummary(written[name] ?? "").length),
    room - names.length * TAG_CHARACTERS,
  );
  const blocks = names.map((name) => wrapInTag(name, {}, clip(quotedInSummary(written[name] ?? ""), perSection)));
  return { title, content: [...blocks, ...beside].join("\n\n") };
}

const TAG_CHARACTERS = 48;

/** Returns the maximum length per text so that all fit together. Short texts leave their share to long ones. */
function fairShare(lengths: readonly number[], room: number): number {
  let left = Math.max(0, room);
  const sorted = [...lengths].sort((a, b) => a - b);
  for (const [index, length] of sorted.entries()) {
    const each = Math.floor(left / (sorted.length - index));
    if (length > each) return each;
    left -= length;
  }
  return Number.MAX_SAFE_INTEGER;
}

function stateBlocks(carriedState: CarriedState): string[] {
  return (["plan", "todos", "agents", "skills"] as const).flatMap((name) => {
    const text = carriedState[name]?.trim() ?? "";
    return text === "" ? [] : [wrapInTag(name, {}, quotedInSummary(clip(text, MAX_STATE_CHARACTERS)))];
  });
}

const withoutTags = (text: string): string =>
  text.replace(new RegExp(`</?(?:${summarySections.join("|")})>`, "g"), "").trim();

const oneLine = (text: string): string => text.split("\n", 1)[0]?.replace(/\s+/g, " ").trim() || "Conversation";
