/** Credentials that are recognised by their context: key blocks, URLs, headers, assignments. */
import { hasBasicCredentials, isPlaceholder, looksGenerated, looksScrambled } from "./secret-likeness.ts";
import type { SecretPattern } from "./secret-patterns.ts";

const KEY_BEGIN = "-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----";
/** Up to the next line of dashes, so that no text is read twice. */
const KEY_BODY = "(?:[^-]|-(?!----)){0,16384}";
/** Text that may precede a line of a key: line breaks, also escaped ones, and the marks of diffs and numbered lines. */
const KEY_MARGIN = String.raw`(?:\s|\\[nrt]|[>+|"',]|\d{1,6}[.:|])`;
const KEY_LINES = `(?:${KEY_MARGIN}{0,40}[A-Za-z0-9+/]{32,16384}={0,2}){1,400}(?:${KEY_MARGIN}{0,40}[A-Za-z0-9+/]{1,31}={0,2})?`;

const privateKey: SecretPattern = {
  id: "private-key",
  anchors: ["-----BEGIN "],
  match: new RegExp(`${KEY_BEGIN}(?:${KEY_BODY}-{5,7}END [A-Z0-9 ]{0,60}-----|${KEY_LINES})`, "y"),
  open: new RegExp(
    `-----BEGIN [A-Z0-9 ]{0,60}(?:-{0,5}$|(?<=PRIVATE KEY(?: BLOCK)?)-----${KEY_BODY}-{0,7}(?:E?N?D?[A-Z0-9 ]{0,60}-{0,5})?$)`,
    "y",
  ),
};

const URL_OPEN = /:\/\/[^\s/"'<>\\]{0,340}$/y;

const urlPassword: SecretPattern = {
  id: "url-password",
  anchors: ["://"],
  match: /(:\/\/[^\s/:@"'<>\\[\]]{0,80}:)[^\s/"'<>\\]{1,256}(?=@)/y,
  open: URL_OPEN,
  accept: (secret) => !isPlaceholder(secret),
};

const urlToken: SecretPattern = {
  id: "url-token",
  anchors: ["://"],
  match: /(:\/\/)[A-Za-z0-9_-]{20,256}(?=@)/y,
  open: URL_OPEN,
  accept: looksGenerated,
};

const bearer: SecretPattern = {
  id: "bearer-token",
  anchors: ["bearer"],
  match: /(bearer["']?[ \t:=]{1,3}["']?)[A-Za-z0-9._~+/=-]{16,1000}/iy,
  open: /bearer["']?[ \t:=]{0,3}["']?[A-Za-z0-9._~+/=-]{0,1000}$/iy,
  accept: looksGenerated,
};

const basic: SecretPattern = {
  id: "basic-credentials",
  anchors: ["basic "],
  match: /(basic {1,2})[A-Za-z0-9+/]{8,1000}={0,2}(?![A-Za-z0-9+/])/iy,
  open: /basic {1,2}[A-Za-z0-9+/]{0,1000}={0,2}$/iy,
  accept: hasBasicCredentials,
};

const KEYWORD =
  "(?:passw(?:or)?d|passphrase|pwd|secret|token|credentials?|authorization|connection[_-]?string|(?:api|access|private|auth|signing|encryption|account|master)[_-]?key)";
const keywordAnchors: readonly string[] = [
  ...["passw", "passphrase", "pwd", "secret", "token", "credential", "authorization", "connection"],
  ...["api", "access", "private", "auth", "signing", "encryption", "account", "master"].flatMap((kind) =>
    ["", "_", "-"].map((link) => `${kind}${link}key`),
  ),
];
/** In SQL a quotation mark inside quotation marks is written twice. */
const QUOTE = "\\\\{0,3}[\"'`]";
const VALUE = "[^\\s\"'`<>(){}\\[\\],;&|\\\\]";
const TYPE = "(?::[ \\t]?[A-Za-z]{1,12}[ \\t]?(?==))?";
const IS = `(?:${QUOTE})?\\]?[ \\t]{0,8}${TYPE}(?:=>|:=|={1,3}|!={1,2}|:)[ \\t]{0,8}(?:[rbuf]{0,2}(?:${QUOTE}){1,2})?`;
/** Matches a partial `IS` and the value after it. */
const IS_OPEN = `(?:${QUOTE}|\\\\{1,3})?\\]?[ \\t]{0,8}(?::[ \\t]?[A-Za-z]{0,12}[ \\t]?)?(?:[:=!>]{1,3}[ \\t]{0,8}[rbuf]{0,2}(?:${QUOTE}|\\\\{1,3}){0,2}${VALUE}{0,256})?`;
const AFTER_FLAG = "[ \\t]{1,4}[\"']?(?<=--[\\w-]{0,60}[ \\t]{1,4}[\"']?)";
const IN_TAG = `>(?=${VALUE}{6,256}</)`;

const assignment: SecretPattern = {
  id: "assigned-secret",
  anchors: keywordAnchors,
  match: new RegExp(`(${KEYWORD}[\\w.-]{0,32}(?:${IS}|${AFTER_FLAG}|${IN_TAG}))${VALUE}{8,256}`, "iy"),
  open: new RegExp(`[a-z_-]{0,20}[\\w.-]{0,32}(?:${IS_OPEN}|${AFTER_FLAG}${VALUE}{0,256}|>${VALUE}{0,256}<?)$`, "iy"),
  accept: (secret, lead) => (/["'`]$/.test(lead) ? looksScrambled(secret) : looksGenerated(secret)),
};

/** Vendors whose keys have no distinctive shape. */
const vendors: readonly string[] = [
  ...["algolia", "assemblyai", "asana", "bugsnag", "cloudflare", "codecov", "cohere", "datadog", "dd_api", "dd_app"],
  ...["deepgram", "dropbox", "fastly", "fireworks", "heroku", "linkedin", "mailchimp", "mailgun", "mistral", "netlify"],
  ...["new_relic", "newrelic", "okta", "pinecone", "rollbar", "shodan", "snowflake", "snyk", "trello", "twilio"],
  ...["vercel", "zendesk"],
];

const vendorKey: SecretPattern = {
  id: "vendor-key",
  anchors: vendors,
  match: new RegExp(`([a-z_]{4,12}[\\w.-]{0,40}${IS})[A-Za-z0-9_-]{24,80}(?![A-Za-z0-9_./-])`, "iy"),
  open: new RegExp(`[a-z_]{4,12}[\\w.-]{0,40}${IS_OPEN}$`, "iy"),
  accept: looksGenerated,
};

export const contextPatterns: readonly SecretPattern[] = [
  privateKey,
  urlPassword,
  urlToken,
  bearer,
  basic,
  vendorKey,
  assignment,
];

const SECRET_KEY = new RegExp(KEYWORD, "i");

/** Whether a member of an object is named like a secret and its value looks like one. */
export function isSecretMember(key: string, value: string): boolean {
  return value.length >= 8 && value.length <= 256 && SECRET_KEY.test(key) && !/\s/.test(value) && looksGenerated(value);
}
