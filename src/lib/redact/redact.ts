/**
 * Redacts secrets in text: known values, in every usual encoding, and everything that has the shape of a credential.
 * One pass finds possible starts, and only those are checked further. So the cost does not grow with the number of
 * secrets, and is at most linear in the length of the text.
 */
import { createAnchorSet } from "./redact-anchors.ts";
import { holdsPieces } from "./redact-spread.ts";
import { type HeldText, holdBack, type TextRange } from "./redact-stream.ts";
import {
  isFindable,
  mayHoldRareForm,
  type Needle,
  needlesOf,
  type SecretValue,
  squeezed,
  squeezedForms,
} from "./redact-values.ts";
import { contextPatterns, isSecretMember } from "./secret-context.ts";
import { type SecretPattern, shapePatterns } from "./secret-patterns.ts";

export interface Redactor {
  text(text: string): string;
  /** Redacts only known values, not text that merely looks like a secret. */
  knownValues(text: string): string;
  /** Redacts keys and strings, at any depth up to 64. Returns the same object if nothing was redacted. */
  json<T>(value: T): T;
  /** For text that arrives in pieces: a secret that is split over them is found too. */
  stream(): HeldText;
  /** Adds a secret value. An ordinary one (short, a word, a path) is ignored. */
  add(value: string, name: string): void;
  /** True if the text contains a known value, in any encoding, also split or with other characters inserted. */
  holdsSecret(text: string): boolean;
  /** Number of known values that are searched for. */
  readonly count: number;
}

/** The replacement for a secret. */
export const REDACTED = /\[redacted:[\w.-]{1,64}\]/;

const MAX_DEPTH = 64;
const TOO_DEEP = "[redacted:nested-too-deep]";
/** Number of characters of a value that the first pass searches for. */
const ANCHOR_LENGTH = 8;
const SHORTEST = 4;
const MAX_DECODINGS = 3;

type Check =
  | { readonly kind: "value"; readonly needle: Needle; readonly name: string }
  | { readonly kind: "pattern"; readonly pattern: SecretPattern; readonly name: string; readonly index: number };

interface Finder {
  /** In no order, may overlap. `onOpen` receives the start of text that may become a secret when more follows. */
  find(text: string, onOpen?: (start: number) => void): TextRange[];
}

export function createRedactor(options: {
  values: Iterable<SecretValue>;
  patterns?: readonly SecretPattern[];
}): Redactor {
  const patterns = options.patterns ?? [...shapePatterns, ...contextPatterns];
  const values = new Map<string, string>();
  let usual: Finder | undefined;
  let all: Finder | undefined;
  let forms: string[] | undefined;

  const add = (value: string, name: string): void => {
    if (values.has(value) || !isFindable(value)) return;
    values.set(value, label(name));
    usual = undefined;
    all = undefined;
    forms = undefined;
  };
  for (const { value, name } of options.values) add(value, name);

  /**
   * At first only the usual forms are searched. The rest is built with the first text that may contain another form.
   */
  const find: Finder["find"] = (text, onOpen) => {
    const isRare = all !== undefined || (values.size > 0 && (onOpen !== undefined || mayHoldRareForm(text)));
    if (isRare) all ??= createFinder(values, { patterns, forms: "all" });
    else usual ??= createFinder(values, { patterns, forms: "usual" });
    return (all ?? usual)?.find(text, onOpen) ?? [];
  };
  const redactText = (text: string): string =>
    text.length < SHORTEST ? text : replaceRanges(text, mergeRanges(find(text)));
  return {
    text: redactText,
    knownValues: (text) =>
      values.size === 0 || text.length < SHORTEST ? text : replaceRanges(text, mergeRanges(find(text).filter(isKnown))),
    json: <T>(value: T) => redactJson(value, redactText, 0) as T,
    stream: () => holdBack((text, onOpen) => mergeRanges(find(text, onOpen)), replaceRanges),
    add,
    holdsSecret(text) {
      forms ??= [...values.keys()].flatMap(squeezedForms);
      return holdsValue(text, { find, forms });
    },
    get count() {
      return values.size;
    },
  };
}

function createFinder(
  values: ReadonlyMap<string, string>,
  { patterns, forms }: { patterns: readonly SecretPattern[]; forms: "usual" | "all" },
): Finder {
  const checks = new Map<string, readonly Check[]>();
  /** The list is shared by all anchors that lead to nothing else. */
  const register = (anchor: string, alone: readonly Check[]): void => {
    const known = checks.get(anchor);
    checks.set(anchor, known ? [...known, ...alone] : alone);
  };
  for (const [value, name] of values) {
    for (const needle of needlesOf(value, forms))
      register(needle.text.slice(0, ANCHOR_LENGTH), [{ kind: "value", needle, name }]);
  }
  for (const [index, pattern] of patterns.entries()) {
    const alone: readonly Check[] = [{ kind: "pattern", pattern, name: pattern.id, index }];
    for (const anchor of pattern.anchors) register(anchor, alone);
  }
  const anchors = [...checks.keys()];
  const lists = [...checks.values()];
  const anchorSet = createAnchorSet(anchors);
  // A pattern does not check the same part of a text again from a later start.
  const judged = new Int32Array(patterns.length);

  return {
    find(text, onOpen) {
      const found: TextRange[] = [];
      judged.fill(0);
      anchorSet.scan(text, (index, start) => {
        const anchor = anchors[index] ?? "";
        if (!isThere(anchor, text, start)) return;
        if (start + anchor.length > text.length) return onOpen?.(start);
        for (const check of lists[index] ?? []) {
          if (check.kind === "value") checkValue(check, { text, start, found, onOpen });
          else if (start >= (judged[check.index] ?? 0)) {
            judged[check.index] = checkPattern(check, { text, start, found, onOpen });
          }
        }
      });
      if (onOpen) onOpen(text.length - anchorSet.openEnd(text));
      return found;
    },
  };
}

/** Whether the anchor is there, as far as the text goes, ignoring case. */
function isThere(anchor: string, text: string, start: number): boolean {
  const end = Math.min(anchor.length, text.length - start);
  for (let at = 0; at < end; at++)
    if (small(anchor.charCodeAt(at)) !== small(text.charCodeAt(start + at))) return false;
  return true;
}

const small = (code: number): number => (code >= 0x41 && code <= 0x5a ? code + 0x20 : code);

interface Candidate {
  readonly text: string;
  readonly start: number;
  readonly found: TextRange[];
  readonly onOpen: ((start: number) => void) | undefined;
}

function checkValue(check: Check & { kind: "value" }, { text, start, found, onOpen }: Candidate): void {
  const { needle, name } = check;
  const end = start + needle.text.length;
  const there = text.slice(start, end);
  const same = needle.anyCase ? there.toLowerCase() : there;
  if (same === needle.text) {
    const rest = needle.encoded ? (/^[A-Za-z0-9+/_-]?={0,2}/.exec(text.slice(end, end + 3))?.[0].length ?? 0) : 0;
    found.push({ start, end: end + rest, name, rank: -1 });
  } else if (onOpen && end > text.length && needle.text.startsWith(same)) onOpen(start);
}

/** Returns the position up to which the text has been checked. */
function checkPattern(check: Check & { kind: "pattern" }, { text, start, found, onOpen }: Candidate): number {
  const { match, open, accept, id } = check.pattern;
  match.lastIndex = start;
  const hit = match.exec(text);
  if (onOpen) {
    open.lastIndex = start;
    if (open.test(text)) onOpen(start);
  }
  if (!hit) return start;
  const end = start + hit[0].length;
  const lead = hit[1] ?? "";
  const accepted = accept?.(hit[0].slice(lead.length), lead) ?? true;
  if (accepted) found.push({ start: start + lead.length, end, name: id, rank: check.index });
  // A match that keeps its lead may contain another lead, and the text after that one may extend further.
  return lead === "" ? end : start;
}

const isKnown = ({ rank }: TextRange): boolean => rank < 0;

/** Returns the stretches in order, without overlaps. */
function mergeRanges(found: TextRange[]): TextRange[] {
  if (found.length < 2) return found;
  found.sort((one, other) => one.start - other.start || other.end - one.end);
  const result: TextRange[] = [];
  for (const next of found) {
    const last = result.at(-1);
    if (last === undefined || next.start >= last.end) {
      result.push({ ...next });
      continue;
    }
    if (next.rank < last.rank) Object.assign(last, { name: next.name, rank: next.rank });
    last.end = Math.max(last.end, next.end);
  }
  return result;
}

function replaceRanges(text: string, stretches: readonly TextRange[]): string {
  if (stretches.length === 0) return text;
  let result = "";
  let from = 0;
  for (const { start, end, name } of stretches) {
    result += `${text.slice(from, start)}[redacted:${name}]`;
    from = end;
  }
  return result + text.slice(from);
}

function redactJson(value: unknown, redactText: (text: string) => string, depth: number): unknown {
  if (typeof value === "string") return redactText(value);
  if (typeof value !== "object" || value === null) return value;
  if (depth >= MAX_DEPTH) return TOO_DEEP;
  if (Array.isArray(value)) {
    const items = value.map((item) => redactJson(item, redactText, depth + 1));
    return items.some((item, index) => item !== value[index]) ? items : value;
  }
  let changed = false;
  const members = Object.entries(value).map(([key, member]): [string, unknown] => {
    const secret = typeof member === "string" && isSecretMember(key, member);
    const newKey = redactText(key);
    const newMember = redactJson(member, redactText, depth + 1);
    const shown = secret && newMember === member ? "[redacted:assigned-secret]" : newMember;
    changed ||= newKey !== key || shown !== member;
    return [newKey, shown];
  });
  return changed ? Object.fromEntries(members) : value;
}

function holdsValue(text: string, { find, forms }: { find: Finder["find"]; forms: readonly string[] }): boolean {
  if (forms.length === 0) return false;
  let decoded = text;
  for (let round = 0; round <= MAX_DECODINGS; round++) {
    if (find(decoded).some(isKnown)) return true;
    const bare = squeezed(decoded);
    if (forms.some((form) => bare.includes(form)) || holdsPieces(decoded, forms)) return true;
    const next = percentDecoded(decoded);
    if (next === decoded) return false;
    decoded = next;
  }
  return false;
}

function percentDecoded(text: string): string {
  return text.replace(/(?:%[0-9A-Fa-f]{2})+/g, (escapes) => {
    const bytes = Uint8Array.from(escapes.slice(1).split("%"), (pair) => Number.parseInt(pair, 16));
    return new TextDecoder().decode(bytes);
  });
}

/** A name is untrusted; the mark must stay well-formed. */
function label(name: string): string {
  return name.replace(/[^\w.-]/g, "_").slice(0, 64) || "secret";
}
