/** The words of a command, as bash would pass them to a program when that is certain. */
import type { DoubleQuotedChild, Word, WordPart } from "unbash";

export interface ShellWord {
  /** After quote and backslash removal; expansions stay as written. */
  readonly value: string;
  /** True when `value` is what the program receives. */
  readonly literal: boolean;
  /** True when that is beyond doubt: no quoting or pattern character in a position where shells differ. */
  readonly plain: boolean;
}

const SIMPLE = /^[\p{L}\p{N}_@%+=:,./#-]+$/u;
/** Allowed outside quotes; `~` and `^` have no special meaning after a letter or a digit. */
const UNQUOTED = /^(?:[\p{L}\p{N}_@%+=:,./#-]|(?<=[\p{L}\p{N}])[~^])*$/u;

export function shellWord(word: Word): ShellWord {
  if (SIMPLE.test(word.text) && !word.text.startsWith("#")) return { value: word.value, literal: true, plain: true };
  const parts = word.parts;
  if (parts === undefined) {
    // No parts: either plain text, or text with backslashes or a tilde.
    const literal = !/^~|[:=]~/.test(word.text) && !/[$`]/.test(word.text.replace(/\\./gs, ""));
    return { value: word.value, literal, plain: UNQUOTED.test(word.text) };
  }
  const literal = parts.every(isLiteral) && !/^~|[:=]~/.test(word.text);
  return { value: word.value, literal, plain: literal && parts.every(isPlain) };
}

function isLiteral(part: WordPart | DoubleQuotedChild): boolean {
  switch (part.type) {
    case "Literal":
    case "SingleQuoted":
    case "AnsiCQuoted":
      return true;
    case "DoubleQuoted":
    case "LocaleString":
      return part.parts.every(isLiteral);
    default:
      return false;
  }
}

function isPlain(part: WordPart): boolean {
  if (part.type === "SingleQuoted") return true;
  if (part.type === "Literal") return UNQUOTED.test(part.text);
  // In an interactive shell, `!` inside double quotes is history expansion.
  return part.type === "DoubleQuoted" && !/[$`!\\]/.test(part.text);
}
