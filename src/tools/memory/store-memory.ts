/** Tools for knowledge beyond the conversation: the memory, the context board and the inbox of sidekicks. */
import * as z from "zod";
import { clip } from "../../lib/text.ts";
import { TroupeError } from "../../protocol/errors.ts";
import { defineTool, type Tool, toolMaker } from "../tool.ts";
import { ToolError } from "../tool-error.ts";
import description from "./store-memory.md";

/** The storage behind the memory tools. */
export interface MemoryPort {
  readonly limits: Readonly<Record<"subject" | "fact" | "citations" | "reason", number>>;
  /** The first is the default. With a single scope, the model cannot choose one. */
  readonly scopes: readonly MemoryPortScope[];
  readonly canVote: boolean;
  /** Descriptions from the store that replace or extend our own. */
  readonly descriptions: { readonly store?: string; readonly instructions?: string; readonly vote?: string };
  /** Removes secrets from a value before it is used. */
  filter<T>(value: T): T;
  /** Returns why nothing can be stored now, or undefined when it can. */
  missing(): string | undefined;
  /** Both throw a `TroupeError` with a message for the model. */
  store(memory: StoreInput, call: MemoryCall): Promise<{ readonly id: string; readonly outcome: MemoryOutcome }>;
  vote(vote: VoteInput, call: MemoryCall): Promise<void>;
}

type MemoryPortScope = "repository" | "user";

type MemoryOutcome = "accepted" | "proposed" | "known";

interface MemoryCall {
  readonly toolCallId: string;
  readonly signal: AbortSignal;
}

interface StoreInput {
  readonly subject: string;
  readonly fact: string;
  readonly citations: string;
  readonly reason: string;
  readonly scope: MemoryPortScope;
}

interface VoteInput {
  readonly fact: string;
  readonly direction: "upvote" | "downvote";
  readonly reason: string;
}

const MAX_DESCRIPTION = 1200;

const traits = { name: "store_memory", accessKind: "memory", mainOnly: true } as const;

export const storeMemoryTool = toolMaker(traits, make);

function make(memory: MemoryPort): Tool {
  const { limits, scopes } = memory;
  const [usualScope = "repository"] = scopes;
  const required = {
    subject: z.string().min(1).max(limits.subject).describe("What it is about, in one or two words"),
    fact: z.string().min(1).max(limits.fact).describe("The fact, in one or two sentences"),
    citations: z
      .string()
      .min(1)
      .max(limits.citations)
      .describe("Where it can be seen: path:line, or what the user said"),
    reason: z.string().min(1).max(limits.reason).describe("Why later sessions will need it"),
  };
  const scope = z.enum(["repository", "user"]).describe("Where it applies (default: this repository)").optional();
  const wantedScope = (input: object): MemoryPortScope =>
    scopes.find((known) => "scope" in input && input.scope === known) ?? usualScope;
  const tool = defineTool({
    ...traits,
    description: describe(memory),
    input: scopes.length > 1 ? z.object({ ...required, scope }) : z.object(required),
    access: (input) => {
      const { subject, fact, citations, reason } = input;
      return { kind: "memory", action: "store", subject, fact, citations, scope: wantedScope(input), reason };
    },
    async run(input, { toolCallId, signal }) {
      const { id, outcome } = await memory
        .store({ ...input, scope: wantedScope(input) }, { toolCallId, signal })
        .catch(asToolError);
      return { content: outcomeText(id, outcome) };
    },
  });
  return checkedFirst(tool, memory, (given) => {
    const parsed = z.object(required).safeParse(given);
    if (!parsed.success) throw new ToolError(`Invalid inputs: ${z.prettifyError(parsed.error)}`);
    const wanted = typeof given === "object" && given !== null && "scope" in given ? given.scope : undefined;
    if (wanted === undefined || scopes.some((known) => known === wanted)) return;
    throw new ToolError(`Invalid scope: ${clip(JSON.stringify(wanted) ?? "", 60)}. It can be ${scopes.join(" or ")}.`);
  });
}

/**
 * Checks a call before permission is requested: removes secrets, validates the inputs, then checks that a memory
 * exists.
 */
export function checkedFirst(tool: Tool, memory: MemoryPort, check: (given: unknown) => void): Tool {
  const { bind } = tool;
  return Object.assign(tool, {
    bind(rawArguments: unknown) {
      const given = memory.filter(rawArguments);
      check(given);
      const missing = memory.missing();
      if (missing !== undefined) throw new ToolError(`Missing client: ${missing}`);
      return bind(given);
    },
  });
}

/** Rethrows a `TroupeError` of the memory as a `ToolError`: its message is written for the caller. */
export function asToolError(error: unknown): never {
  if (!(error instanceof TroupeError)) throw error;
  throw new ToolError(error.hint ? `${error.message} ${error.hint}` : error.message, { cause: error });
}

function describe({ descriptions }: MemoryPort): string {
  const own = descriptions.store ?? description.trim();
  return clip([own, descriptions.instructions].filter(Boolean).join("\n\n"), MAX_DESCRIPTION);
}

function outcomeText(id: string, outcome: MemoryOutcome): string {
  switch (outcome) {
    case "accepted":
      return `Stored (${id}). Later sessions will see it.`;
    case "proposed":
      return `Stored as a proposal (${id}). Later sessions see it once the user accepts it: troupe memory accept ${id}`;
    case "known":
      return `The memory already contains this (${id}). Nothing was changed.`;
  }
}
