/**
 * Shell completion. The scripts of the shells call `troupe __complete -- <words>`, where the last word is the one being
 * typed. Everything comes from the table of commands; names of models, agents, sessions and servers are looked up.
 */

import { defined } from "../../lib/defined.ts";
import { commands } from "../command-list.ts";
import { flagsOf } from "../dispatch.ts";
import { type Option, options } from "../options.ts";
import type { Command, Completion, Subcommand } from "../table/command.ts";

export interface CompletionCandidate {
  readonly value: string;
  readonly description: string;
}

/** Kinds that the shell itself completes. */
type ShellKind = "file" | "folder";

export interface Completed {
  readonly candidates: readonly CompletionCandidate[];
  readonly shell?: ShellKind;
}

/** Returns the names of a kind that must be looked up. Failures give an empty list. */
export type Lookup = (kind: Extract<Completion, string>) => Promise<readonly CompletionCandidate[]>;

export async function complete(words: readonly string[], lookup: Lookup): Promise<Completed> {
  const typed = words.at(-1) ?? "";
  const before = words.slice(0, -1);
  const { options: given, positionals, awaiting } = readWords(before);
  if (given.includes("prompt") && awaiting === undefined && positionals.length === 0 && !typed.startsWith("-"))
    return none;
  if (awaiting) return valuesOf(awaiting.values, typed, lookup);
  const inline = /^--([^=]+)=(.*)$/s.exec(typed);
  if (inline) return inlineValues(inline[1] ?? "", inline[2] ?? "", lookup);
  const current = argumentPosition(positionals);
  if (typed.startsWith("-")) return { candidates: starting(flagCandidates(current, given), typed) };
  return wordsOf(current, typed, lookup);
}

const none: Completed = { candidates: [] };

interface Read {
  readonly options: readonly string[];
  readonly positionals: readonly string[];
  /** The flag whose value is typed next. */
  readonly awaiting?: Option;
}

function readWords(words: readonly string[]): Read {
  const given: string[] = [];
  const positionals: string[] = [];
  let awaiting: Option | undefined;
  for (const word of words) {
    if (awaiting) {
      awaiting = undefined;
      continue;
    }
    const option = options.find(({ name, short }) => word === `--${name}` || word === `-${short}`);
    const inline = /^--([^=]+)=/.exec(word)?.[1];
    if (option) given.push(option.name);
    else if (inline !== undefined) given.push(inline);
    else if (!word.startsWith("-")) positionals.push(word);
    if (option?.value) awaiting = option;
  }
  return { options: given, positionals, ...defined({ awaiting }) };
}

interface ArgumentPosition {
  readonly command?: Command;
  readonly subcommand?: Subcommand;
  /** How many arguments stand before the typed word. */
  readonly position: number;
  readonly isStart: boolean;
}

function argumentPosition([word, second, ...rest]: readonly string[]): ArgumentPosition {
  if (word === undefined) return { position: 0, isStart: true };
  const command = commands.find(({ name }) => name === word);
  if (command === undefined) return { position: 0, isStart: false };
  const subcommand = command.subcommands?.find(({ name }) => name === second);
  if (subcommand) return { command, subcommand, position: rest.length, isStart: false };
  return { command, position: second === undefined ? 0 : 1 + rest.length, isStart: false };
}

function flagCandidates(
  { command, subcommand, isStart }: ArgumentPosition,
  given: readonly string[],
): CompletionCandidate[] {
  const usual = command?.subcommands?.find(({ name }) => name === command.usual);
  const names = isStart
    ? options.filter(({ group }) => group !== "Commands").map(({ name }) => name)
    : command
      ? [...flagsOf(subcommand ?? usual ?? command), "help"]
      : [];
  const uses = (subcommand ?? usual ?? command)?.flags ?? {};
  return names.flatMap((name) => {
    const option = options.find((one) => one.name === name);
    const isLeft = option?.multiple || !given.includes(name);
    const own = uses[name];
    return option && isLeft ? [{ value: `--${name}`, description: typeof own === "string" ? own : option.help }] : [];
  });
}

async function wordsOf(current: ArgumentPosition, typed: string, lookup: Lookup): Promise<Completed> {
  const { command, subcommand, position, isStart } = current;
  if (isStart) return { candidates: starting(commands.map(candidateOf), typed) };
  if (command === undefined) return none;
  const verbs = subcommand === undefined && position === 0 ? (command.subcommands ?? []).map(candidateOf) : [];
  const list = (subcommand ?? command).arguments ?? [];
  const argument = list[position] ?? (list.at(-1)?.repeated ? list.at(-1) : undefined);
  const own = argument?.values === undefined ? none : await valuesOf(argument.values, typed, lookup);
  return { ...own, candidates: [...starting(verbs, typed), ...own.candidates] };
}

const candidateOf = ({ name, summary }: Subcommand): CompletionCandidate => ({ value: name, description: summary });

async function valuesOf(values: Completion | undefined, typed: string, lookup: Lookup): Promise<Completed> {
  if (values === undefined) return none;
  if (values === "file" || values === "folder") return { candidates: [], shell: values };
  const all = typeof values === "string" ? await lookup(values) : values.map((value) => ({ value, description: "" }));
  return { candidates: starting(all, typed) };
}

async function inlineValues(name: string, typed: string, lookup: Lookup): Promise<Completed> {
  const { candidates } = await valuesOf(options.find((option) => option.name === name)?.values, typed, lookup);
  return { candidates: candidates.map(({ value, description }) => ({ value: `--${name}=${value}`, description })) };
}

const starting = (candidates: readonly CompletionCandidate[], typed: string): CompletionCandidate[] =>
  candidates.filter(({ value }) => value.startsWith(typed));
