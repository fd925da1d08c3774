/**
 * Analyses a shell command by its text alone. This folder contains that analysis. A command is plain only when there is
 * no doubt how bash reads it. Everything else is opaque, which is always safe and costs a question. Words that a denial
 * could match are collected from every part, plain or not.
 */

import type { ParsedScript, SyntaxNode } from "unbash";
import { withReopened } from "../devices.ts";
import { type CommandFacts, collect, LimitExceeded } from "./collect.ts";
import type { Folders } from "./folders.ts";

export interface ShellCommand {
  /** The unit of an approval: `git push`, `npm`, `./build.sh`. */
  readonly identifier: string;
  /** After quote removal; exact when `certain`. */
  readonly words: readonly string[];
  readonly readOnly: boolean;
  /** True when every word is known and no words are added at run time. */
  readonly certain: boolean;
  /** True when its arguments make it write elsewhere or run something other than its name says. */
  readonly escapes: boolean;
  /** The wrappers around it, outermost first; empty when bash starts it directly. */
  readonly via: readonly string[];
  /** True for a wrapper that adds nothing, such as `timeout`: a rule for the inner command covers it. */
  readonly transparent: boolean;
  /** The folders in which it may run (default: the starting folder of the whole command). */
  readonly folders?: Folders;
}

export interface ShellRedirection {
  readonly target: string;
  readonly write: boolean;
  /** As for `ShellCommand`. */
  readonly folders?: Folders;
}

export interface ShellAnalysis {
  readonly text: string;
  readonly plain: boolean;
  /** Every command that would run: in the chain, in substitutions and inside wrappers. */
  readonly commands: readonly ShellCommand[];
  /** Words that look like paths, as written. */
  readonly paths: readonly string[];
  readonly urls: readonly string[];
  readonly redirections: readonly ShellRedirection[];
  /** Folders it changes into; relative paths may refer to them. */
  readonly directories: readonly string[];
  /** Why it is not plain, for the user. */
  readonly opaqueReasons: readonly string[];
  /** Variables it sets that change what other programs do. */
  readonly dangerousVariables: readonly string[];
  /** True when a program could run whose name is not in the text. */
  readonly hidden: boolean;
  /** Words in positions from which an unknown program could run them, folded for comparison. */
  readonly strays: ReadonlySet<string>;
  /** Set when the command exceeds the limits of the analysis; it is then refused. */
  readonly exceeded?: string;
}

/** The parser, loaded on the first command. */
export interface ShellParser {
  parse(source: string): ParsedScript;
  forEachChild(node: SyntaxNode, visit: (child: SyntaxNode) => void): void;
}

const MAX_LENGTH = 64 * 1024;
/** The parser's time is proportional to this product when opened brackets are never closed. */
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
  if (tooMuch !== undefined) return refusedAnalysis(text, tooMuch);
  let findings: CommandFacts;
  try {
    findings = collect(parser, text, now);
  } catch (error) {
    if (error instanceof LimitExceeded) return refusedAnalysis(text, error.message);
    // The parser is recursive. No command written by hand overflows its stack.
    if (error instanceof RangeError) return refusedAnalysis(text, "it is nested too deeply");
    throw error;
  }
  const opaqueReasons = [...oddCharacters(text), ...findings.opaque];
  return {
    text,
    plain: opaqueReasons.length === 0,
    commands: findings.commands,
    paths: [...findings.paths],
    urls: [...findings.urls],
    redirections: withReopened(findings.redirections, findings.commands),
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
  if (DECEPTIVE.test(text)) reasons.push("it contains characters that hide or reorder text");
  if (FOREIGN_SPACE.test(text)) reasons.push("it contains white space that the shell does not treat as a separator");
  if (LONE_SURROGATE.test(text)) reasons.push("it is not well-formed text");
  return reasons;
}

function refusedAnalysis(text: string, exceeded: string): ShellAnalysis {
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
