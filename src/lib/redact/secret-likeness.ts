/** Heuristics that distinguish generated text from text that a human wrote. */

const PLACEHOLDER =
  /^(?:\$|%|\{|\[|<|\*|#|@|\.|~|…|x{3,}|0{6,}|1234|abcd?e?f?g?h?$|your|my[-_]|some[-_]|the[-_]|example|sample|dummy|fake|placeholder|change|redacted|hidden|none|null|undefined|true|false|todo|process\.|os\.|env[.:]|config\.|this\.|self\.|vault:|secret:|ref:|https?:|file:)/i;
const PLACEHOLDER_WORDS = new Set(
  "password passwd passw0rd pass pwd secret token key user username root admin postgres mysql mongo redis guest test example changeme foobar foo bar hunter2 p4ssw0rd pass123 password1 password123 secret123".split(
    " ",
  ),
);
/**
 * A word as it appears in a name: `token`, `Token`, `HTTP` before `Server`. There is only one way to match it, so there
 * is no backtracking.
 */
const WORD = "(?:[A-Z]?[a-z]{2,}(?![a-z])|[A-Z]+(?=[A-Z][a-z]|[^A-Za-z]|$))";
const PIECE = `(?:(?:${WORD}\\$?\\d{0,4}(?!\\d)){1,12}|\\d{1,4}(?!\\d)|[A-Za-z]\\d{0,3})`;
const IDENTIFIER = "[A-Za-z_$][\\w$]*";
/** Code: `config.auth.token2`, `get_token_v2`, `readToken2`, `AES-256-GCM`, `2024-01-01T10:00:00`, `v1.2.3`. */
const CODE = new RegExp(
  [
    `^${IDENTIFIER}(?:[.:]{1,2}${IDENTIFIER})+[?!]?$`,
    `^[_-]*${PIECE}(?:[_-]+${PIECE})*[_-]*$`,
    "^\\d{4}-\\d\\d-\\d\\d",
    "^v?\\d+(?:\\.\\d+)+",
    "^#?[0-9.,:%+/x-]+$",
  ].join("|"),
);
const MAX_CODE_LENGTH = 80;

/** True for letters and digits mixed as no human writes them. */
export function looksGenerated(value: string): boolean {
  if (/^(?=.{0,40}[a-f])[0-9a-f]{32,64}$/i.test(value)) return new Set(value).size >= 7;
  const share = changes(value) / (value.length - 1);
  if (value.length < 8 || share < (value.length < 24 ? 0.3 : 0.2)) return false;
  if (!/[0-9]/.test(value) || !/[A-Za-z]/.test(value) || isPlaceholder(value) || isPath(value)) return false;
  return new Set(value).size >= 7 && ((value.length >= 20 && share >= 0.4) || !isCode(value));
}

/** Like `looksGenerated`, for quoted text, which cannot be the name of a variable: digits are not needed. */
export function looksScrambled(value: string): boolean {
  if (looksGenerated(value)) return true;
  if (value.length < 16 || !/^[A-Za-z_-]+$/.test(value) || isPlaceholder(value) || isCode(value)) return false;
  return changes(value) / (value.length - 1) >= 0.3 && new Set(value).size >= 10;
}

export function isPlaceholder(value: string): boolean {
  return PLACEHOLDER.test(value) || PLACEHOLDER_WORDS.has(value.toLowerCase()) || new Set(value).size <= 2;
}

/** Whether it decodes to the content of a basic authentication header: `name:password`. */
export function hasBasicCredentials(encoded: string): boolean {
  if (encoded.length % 4 !== 0) return false;
  try {
    return /^[\x20-\x7e]{0,200}:[\x20-\x7e]{1,800}$/.test(atob(encoded));
  } catch {
    return false;
  }
}

function isCode(value: string): boolean {
  return value.length <= MAX_CODE_LENGTH && CODE.test(value);
}

/** True for segments like those of files, not for base64 that happens to contain slashes. */
function isPath(value: string): boolean {
  if (!value.includes("/") || /[+=]/.test(value)) return false;
  return value.split("/").every((segment) => segment.length < 4 || changes(segment) <= segment.length * 0.3);
}

/** Returns how often a character is of another kind than the one before. */
function changes(value: string): number {
  let total = 0;
  for (let at = 1; at < value.length; at++) {
    if (kind(value.charCodeAt(at)) !== kind(value.charCodeAt(at - 1))) total++;
  }
  return total;
}

function kind(code: number): number {
  if (code >= 0x30 && code <= 0x39) return 0;
  if (code >= 0x41 && code <= 0x5a) return 1;
  if (code >= 0x61 && code <= 0x7a) return 2;
  return 3;
}
