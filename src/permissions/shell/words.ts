/** The words of a command, as bash would hand them to a program where that is certain. */
import type { DoubleQuotedChild, Word, WordPart } from "unbash";

export interface ShellWord {
  /** After quote and backslash removal; expansions stay as they are written. */
  readonly value: string;
  /** True when `value` is what the program gets. */
  readonly literal: boolean;
  /** True when that is beyond doubt: no quoting or pattern character in a place where shells differ. */
  readonly plain: boolean;
}

const SIMPLE = /^[\p{L}\p{N}_@%+=:,./#-]+$/u;
/** Outside quotes; `~` and `^` mean nothing after a letter or a digit. */
const UNQUOTED = /^(?:[\p{L}\p{N}_@%+=:,./#-]|(?<=[\p{L}\p{N}])[~^])*$/u;

export function shellWord(word: Word): ShellWord {
  if (SIMPLE.test(word.text) && !word.text.startsWith("#")) return { value: word.value, literal: true, plain: true };
  const parts = word.parts;
  if (parts === undefined) {
    // No structure of its own: either plain text, or text with backslashes or a tilde.
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
  // `!` inside double quotes is history expansion where a shell is interactive.
  return part.type === "DoubleQuoted" && !/[$`!\\]/.test(part.text);
}
