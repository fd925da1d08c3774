import * as z from "zod";
import { forAgent, type PlainStep, type Step } from "../../src/model/faux/faux-plan.ts";
import { says } from "../../src/model/faux/faux-step.ts";
import type { ModelRequest } from "../../src/model/provider.ts";
import type { SessionEvent } from "../../src/protocol/event.ts";
import { Compactions } from "../../src/session/compaction/compaction.ts";
import { type CompactionOptions, DEFAULT_COMPACTION } from "../../src/session/compaction/compaction-options.ts";
import { defineTool, type Tool } from "../../src/tools/tool.ts";
import { type Stage, stage } from "../support/stage.ts";

/** A request for a summary, told by its last message. */
export const asksForSummary = ({ messages }: ModelRequest): boolean =>
  messages.at(-1)?.content.startsWith("Stop working now and write a summary") ?? false;

export const SUMMARY =
  "<overview>\nThe user reads big files.\n</overview>\n<history>\n1. read\n</history>\n<checkpoint_title>\nReading big files\n</checkpoint_title>";

export const summaries = (...steps: readonly PlainStep[]): Step => forAgent(asksForSummary, ...steps);
export const summary = (text = SUMMARY): PlainStep => says(text);

/** Returns as many characters as are asked for. */
export const big: Tool = defineTool({
  name: "big",
  description: "Much text.",
  readOnly: true,
  input: z.object({ characters: z.number() }),
  run: async ({ characters }) => ({ content: "word ".repeat(characters / 5) }),
});

type StageOptions = NonNullable<Parameters<typeof stage>[1]>;
type CompactionsParts = ConstructorParameters<typeof Compactions>[0];

export interface SmallOptions extends Omit<StageOptions, "compactions"> {
  readonly window?: number;
  readonly compaction?: Partial<CompactionOptions>;
  readonly parts?: Partial<CompactionsParts>;
  readonly events?: readonly SessionEvent[];
}

/** A session whose model has a small window. */
export async function small(
  steps: readonly Step[],
  options: SmallOptions = {},
): Promise<Stage & { readonly compactions: Compactions }> {
  const { window = 4_000, compaction = {}, parts, events = [], ...rest } = options;
  const compactions = new Compactions({ options: { ...DEFAULT_COMPACTION, ...compaction }, events, ...parts });
  const made = await stage(steps, { tools: [big], largeOutputBytes: 1e6, ...rest, compactions });
  Object.assign(made.session.mainAgent.model, { contextWindow: window });
  return { ...made, compactions };
}
