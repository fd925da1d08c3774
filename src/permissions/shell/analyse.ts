/**
 * What a shell command would do, from its text alone. A command is plain only when there is no doubt how bash reads
 * it; everything else is opaque, which is never wrong and costs a question. Words that a refusal could be about are
 * collected from every corner, plain or not.
 */
import type { ParsedScript, SyntaxNode } from "unbash";
import { collect, type Findings, LimitExceeded } from "./collect.ts";
import type { Folders } from "./folders.ts";

export interface ShellCommand {
  /** What an approval is about: `git push`, `npm`, `./build.sh`. */
  readonly identifier: string;
  /** After quote removal; exact when `certain`. */
  readonly words: readonly string[];
  readonly readOnly: boolean;
  /** True when every word is known and no further words are added when it runs. */
  readonly certain: boolean;
  /** True when its arguments make it write elsewhere or run something else than its name says. */
  readonly escapes: boolean;
  /** The wrappers around it, outermost first; empty when bash itself starts it. */
  readonly via: readonly string[];
  /** True for a wrapper that adds nothing, such as `timeout`: a rule for the inner command covers it. */
  readonly transparent: boolean;
  /** The folders in which it may run; left out, where the whole command starts. */
  readonly folders?: Folders;
}

export interface ShellRedirection {
  readonly target: string;
  readonly write: boolean;
  /** As of a command. */
  readonly folders?: Folders;
}

export interface ShellAnalysis {
  readonly text: string;
  readonly plain: boolean;
  /** Every command that would run: of the chain, nested in substitutions, and inside wrappers. */
  readonly commands: readonly ShellCommand[];
  /** Words that look like paths, as written. */
  readonly paths: readonly string[];
  readonly urls: readonly string[];
  readonly redirections: readonly ShellRedirection[];
  /** Folders it changes into; relative paths may mean something there. */
  readonly directories: readonly string[];
  /** Why it is not plain, worded for a person. */
  readonly opaqueReasons: readonly string[];
  /** Variables it sets that change what other programs do. */
  readonly dangerousVariables: readonly string[];
  /** True when a program could run whose name does not stand in the text. */
  readonly hidden: boolean;
  /** Words in places from which an unknown program could run them, in the form in which names are compared. */
  readonly strays: ReadonlySet<string>;
  /** Set when the command is beyond what is analysed: then it is refused. */
  readonly exceeded?: string;
}

/** The parser, loaded when the first command is looked at. */
export interface ShellParser {
  parse(source: string): ParsedScript;
  forEachChild(node: SyntaxNode, visit: (child: SyntaxNode) => void): void;
}

const MAX_LENGTH = 64 * 1024;
/** The parser needs time in proportion to this product when nothing that is opened is ever closed. */
const MAX_OPENED_TIMES_LENGTH = 12_000_000;
const MAX_BRACES = 4000;
const MAX_HERE_DOCUMENTS = 1000;

const UNPRINTABLE = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/;
const DECEPTIVE = /[\p{Default_Ignorable_Code_Point}\p{Bidi_Control}\p{Cf}]/u;
const LONE_SURROGATE = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/;
const FOREIGN_SPACE = /[\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/;

export async function loadShellParser(): Promise<ShellParser> {
  const { parse, forEachChild } = await import("unbash");
  return { parse, forEachChild };
}

export function analyseShell(parser: ShellParser, text: string, now: () => number = monotonic): ShellAnalysis {
  const tooMuch = beyondLimits(text);
  if (tooMuch !== undefined) return refused(text, tooMuch);
  let findings: Findings;
  try {
    findings = collect(parser, text, now);
  } catch (error) {
    if (error instanceof LimitExceeded) return refused(text, error.message);
    // The parser recurses; what it cannot hold on the stack is not a command a person wrote.
    if (error instanceof RangeError) return refused(text, "it is nested too deeply");
    throw error;
  }
  const opaqueReasons = [...oddCharacters(text), ...findings.opaque];
  return {
    text,
    plain: opaqueReasons.length === 0,
    commands: findings.commands,
    paths: [...findings.paths],
    urls: [...findings.urls],
    redirections: findings.redirections,
    directories: findings.directories,
    opaqueReasons,
    dangerousVariables: [...findings.dangerousVariables],
    hidden: findings.hidden,
    strays: findings.strays,
  };
}

/** Checked before parsing, because parsing cannot be interrupted. */
function beyondLimits(text: string): string | undefined {
  if (text.length > MAX_LENGTH) return `it is longer than ${MAX_LENGTH} characters`;
  const opened = occurrences(text, /[$<>]\(|\$\[/g);
  if (opened * text.length > MAX_OPENED_TIMES_LENGTH) return "it holds too many substitutions";
  if (occurrences(text, /\{/g) > MAX_BRACES) return `it holds more than ${MAX_BRACES} braces`;
  if (occurrences(text, /<</g) > MAX_HERE_DOCUMENTS) return `it holds more than ${MAX_HERE_DOCUMENTS} here-documents`;
  return undefined;
}

function oddCharacters(text: string): string[] {
  const reasons: string[] = [];
  if (text.includes("\\")) reasons.push("it holds a backslash");
  if (UNPRINTABLE.test(text)) reasons.push("it holds a control character");
  if (DECEPTIVE.test(text)) reasons.push("it holds characters that hide or reorder text");
  if (FOREIGN_SPACE.test(text)) reasons.push("it holds white space that is no separator");
  if (LONE_SURROGATE.test(text)) reasons.push("it is not well-formed text");
  return reasons;
}

function refused(text: string, exceeded: string): ShellAnalysis {
  return {
    text,
    plain: false,
    commands: [],
    paths: [],
    urls: [],
    redirections: [],
    directories: [],
    opaqueReasons: [exceeded],
    dangerousVariables: [],
    hidden: true,
    strays: new Set(),
    exceeded,
  };
}

function occurrences(text: string, pattern: RegExp): number {
  return text.match(pattern)?.length ?? 0;
}

function monotonic(): number {
  return performance.now();
}
