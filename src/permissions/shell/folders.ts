/**
 * The folders in which parts of a command may run, derived from `cd` and similar commands. Uses the text only; nothing
 * is looked up.
 */
import type { ShellWord } from "./words.ts";

export interface Folders {
  /** Each entry is a list of `cd` operands, applied in order from the folder where the whole command starts. */
  readonly ways: readonly (readonly string[])[];
  /** True when it may also be any other folder. */
  readonly unknown: boolean;
}

const MAX_WAYS = 16;

export const START: Folders = { ways: [[]], unknown: false };

/** Returns the folders after `cd`, `pushd` or `popd` succeeded, or undefined for other commands. */
export function enteredBy(name: string, args: readonly ShellWord[], from: Folders): Folders | undefined {
  if (name === "popd") return { ...from, unknown: true };
  if (name !== "cd" && name !== "pushd") return undefined;
  const end = args.findIndex((word) => word.value === "--");
  const operands = args.filter((word, index) => (end >= 0 && index > end) || !/^-./.test(word.value));
  const [operand] = operands.filter((word) => word.value !== "--");
  if (operand === undefined) return name === "cd" ? enterFolder("~", from) : { ...from, unknown: true };
  const isKnown = operand.literal || /^~(?:\/[\w./-]*)?$/.test(operand.value);
  const isPrevious = operand.value === "-" || (name === "pushd" && /^\+\d/.test(operand.value));
  return isKnown && !isPrevious ? enterFolder(operand.value, from) : { ...from, unknown: true };
}

function enterFolder(operand: string, { ways, unknown }: Folders): Folders {
  // An absolute operand is the same folder from everywhere.
  if (/^[/~]/.test(operand)) return { ways: [[operand]], unknown: false };
  return { ways: ways.map((way) => [...way, operand]), unknown };
}

export function either(one: Folders, other: Folders): Folders {
  if (one === other) return one;
  const ways = new Map([...one.ways, ...other.ways].map((way) => [way.join("\0"), way]));
  return { ways: [...ways.values()].slice(0, MAX_WAYS), unknown: one.unknown || other.unknown || ways.size > MAX_WAYS };
}
