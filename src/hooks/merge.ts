/**
 * Merges the output of several hooks of one point. Every rule is a pure function of the merged output and one more
 * output. `next` returns the input of the following hook after an earlier one changed something.
 */
import { defined } from "../lib/defined.ts";
import { clip } from "../lib/text.ts";
import type { HookInput, HookOutput, HookPoint } from "./points.ts";

/** A missing field means that no hook set it. */
export type Merged<P extends HookPoint> = HookOutput<P>;

const MAX_CONTEXT_CHARACTERS = 10_000;

interface Rule<P extends HookPoint> {
  merge(before: Merged<P>, said: HookOutput<P>): Merged<P>;
  next?(input: HookInput<P>, merged: Merged<P>): HookInput<P>;
  /** For a second pass over hooks that judged another subject than the final one: of their output, only objections count. */
  readonly recheck?: { subject(merged: Merged<P>): unknown; objection(said: HookOutput<P>): HookOutput<P> };
}

export const mergeRules: { readonly [P in HookPoint]: Rule<P> } = {
  sessionStart: {
    merge: (before, said) => ({
      ...withContext(before, said),
      ...(said.modifiedConfig && { modifiedConfig: { ...before.modifiedConfig, ...said.modifiedConfig } }),
    }),
  },
  sessionEnd: {
    merge: (before, said) => ({
      ...before,
      ...said,
      ...(said.cleanupActions && { cleanupActions: [...(before.cleanupActions ?? []), ...said.cleanupActions] }),
    }),
  },
  userPromptSubmitted: {
    merge: (before, said) => ({
      ...withContext(before, said),
      ...quiet(said),
      ...mergeAnswer(before, said),
      ...defined({ modifiedPrompt: said.modifiedPrompt }),
    }),
    next: (input, { modifiedPrompt }) => ({ ...input, prompt: modifiedPrompt ?? input.prompt }),
  },
  userPromptTransformed: {
    merge: (before, said) => ({ ...before, ...said }),
    next: (input, { modifiedTransformedPrompt: text }) => ({
      ...input,
      transformedPrompt: text ?? input.transformedPrompt,
    }),
  },
  preToolUse: {
    merge: mergePreToolUse,
    next: (input, { modifiedArgs }) => (modifiedArgs === undefined ? input : { ...input, toolArgs: modifiedArgs }),
    recheck: { subject: ({ modifiedArgs }) => modifiedArgs, objection: objectionTo },
  },
  postToolUse: {
    merge: (before, said) => ({
      ...withContext(before, said),
      ...quiet(said),
      ...defined({ modifiedResult: said.modifiedResult }),
    }),
    next: (input, { modifiedResult }) => ({ ...input, toolResult: modifiedResult ?? input.toolResult }),
  },
  postToolUseFailure: { merge: withContext },
  permissionRequest: {
    merge: (before, said) => (before.behavior === "deny" && said.behavior !== "deny" ? before : { ...before, ...said }),
  },
  preMcpToolCall: {
    merge: (before, said) => ({ ...before, ...said }),
    next: (input, { metaToUse }) => {
      if (metaToUse === undefined) return input;
      const { _meta, ...rest } = input;
      return metaToUse === null ? rest : { ...rest, _meta: metaToUse };
    },
  },
  agentStop: { merge: withBlock },
  subagentStart: { merge: withContext },
  subagentStop: {
    merge: (before, said) => ({
      ...withBlock(before, said),
      ...defined({ modifiedResponse: said.modifiedResponse }),
    }),
    next: (input, { modifiedResponse }) => ({ ...input, response: modifiedResponse ?? input.response }),
  },
  preCompact: { merge: (before) => before },
  errorOccurred: { merge: (before, said) => ({ ...before, ...said }) },
  notification: { merge: withContext },
};

const strictness = { allow: 1, ask: 2, deny: 3 } as const;

/** The strictest decision wins, with its reason. An approval is void when the arguments are changed afterwards. */
function mergePreToolUse(before: Merged<"preToolUse">, said: HookOutput<"preToolUse">): Merged<"preToolUse"> {
  const { permissionDecision: decision, permissionDecisionReason: reason, modifiedArgs } = said;
  const { permissionDecision: earlier, permissionDecisionReason: _, ...undecided } = before;
  const kept: Merged<"preToolUse"> = modifiedArgs !== undefined && earlier === "allow" ? undecided : before;
  const rank = kept.permissionDecision === undefined ? 0 : strictness[kept.permissionDecision];
  const wins = decision !== undefined && strictness[decision] > rank;
  const decided = { ...undecided, ...defined({ permissionDecision: decision }) };
  return {
    ...withContext(wins ? { ...decided, ...defined({ permissionDecisionReason: reason }) } : kept, said),
    ...quiet(said),
    ...mergeAnswer(before, said),
    ...defined({ modifiedArgs }),
  };
}

function objectionTo({ permissionDecision, permissionDecisionReason: reason }: HookOutput<"preToolUse">) {
  if (permissionDecision !== "deny" && permissionDecision !== "ask") return {};
  return { permissionDecision, ...defined({ permissionDecisionReason: reason }) };
}

function withContext<M extends { additionalContext?: string }>(before: M, said: { additionalContext?: string }): M {
  const more = said.additionalContext?.trim() ?? "";
  if (more === "") return before;
  const text = before.additionalContext === undefined ? more : `${before.additionalContext}\n\n${more}`;
  return { ...before, additionalContext: clip(text, MAX_CONTEXT_CHARACTERS) };
}

function quiet(said: { suppressOutput?: boolean }): { suppressOutput?: true } {
  return said.suppressOutput ? { suppressOutput: true } : {};
}

interface Handled {
  handled?: boolean;
  responseContent?: string;
  handledBy?: string;
}

/** The first hook that handles the request wins. */
function mergeAnswer(before: Handled, said: Handled): Handled {
  if (before.handled === true || said.handled !== true) return {};
  const { handled, responseContent = "", handledBy } = said;
  return { handled, responseContent, ...defined({ handledBy }) };
}

interface Block {
  decision?: "block" | "allow";
  reason?: string;
}

/** One block is enough; the reasons of several blocks are joined. */
function withBlock<M extends Block>(before: M, said: Block): M {
  if (said.decision !== "block") return before;
  const reasons = [before.reason, said.reason?.trim()].filter((reason) => reason !== undefined && reason !== "");
  if (reasons.length === 0) return { ...before, decision: "block" };
  return { ...before, decision: "block", reason: clip(reasons.join("\n\n"), MAX_CONTEXT_CHARACTERS) };
}
