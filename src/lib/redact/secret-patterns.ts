/**
 * Credentials that are recognised by their own shape. Adding one is a line in the table. Credentials that need their
 * context (headers, URLs, assignments) are in `secret-context.ts`.
 */
export interface SecretPattern {
  readonly id: string;
  /** A match begins with one of these. Case is ignored here; the expressions decide. */
  readonly anchors: readonly string[];
  /** Sticky. Group 1 stays readable, the rest of the match is redacted. */
  readonly match: RegExp;
  /** Sticky, up to the end: text that may become a match when more follows. */
  readonly open: RegExp;
  /** The final decision about the part to redact. */
  accept?(secret: string, lead: string): boolean;
}

/** No credential is longer; what follows is other text. */
const MAX_LENGTH = 600;
const WORD = "[A-Za-z0-9_-]";
const LETTERS = "[A-Za-z0-9]";
const HEX = "[0-9a-f]";
/** The beginning of a word, also right after an escape in JSON, a URL or a terminal. */
const START = String.raw`(?<=^|[^A-Za-z0-9_]|\\[nrtbfv0]|%[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\u001b\[[0-9;]{0,12}m)`;

/** `prefix`, then at least `least` characters of `body`. */
type TokenRow = readonly [id: string, prefix: string, body: string, least: number];

const tokens: readonly TokenRow[] = [
  ...["ghp_", "gho_", "ghu_", "ghs_", "ghr_"].map((prefix): TokenRow => ["github-token", prefix, LETTERS, 36]),
  ["github-pat", "github_pat_", "[A-Za-z0-9_]", 50],
  ...["glpat-", "gldt-", "glrt-", "glrtr-", "glptt-", "glft-", "glsoat-", "glcbt-", "glimt-", "glagent-", "gloas-"].map(
    (prefix): TokenRow => ["gitlab-token", prefix, "[A-Za-z0-9_.-]", 20],
  ),
  ["bitbucket-token", "ATBB", LETTERS, 32],
  ["atlassian-token", "ATATT3", "[A-Za-z0-9_=-]", 100],
  ["atlassian-token", "ATCTT3", "[A-Za-z0-9_=-]", 100],
  ["aws-session-token", "IQoJb3JpZ2lu", "[A-Za-z0-9/+=]", 80],
  ["aws-session-token", "FwoGZXIvYXdz", "[A-Za-z0-9/+=]", 80],
  ["aws-bedrock-key", "ABSK", "[A-Za-z0-9/+=]", 100],
  ["google-api-key", "AIza", WORD, 35],
  ["google-client-secret", "GOCSPX-", WORD, 24],
  ["google-access-token", "ya29.", "[A-Za-z0-9_.-]", 30],
  ["google-refresh-token", "1//0", WORD, 40],
  ["anthropic-key", "sk-ant-", WORD, 32],
  ["openrouter-key", "sk-or-v1-", HEX, 32],
  ["openai-key", "sk-proj-", WORD, 32],
  ["openai-key", "sk-svcacct-", WORD, 32],
  ["openai-key", "sk-admin-", WORD, 32],
  ["openai-key", "sk-None-", WORD, 32],
  ["openai-key", "sk-", LETTERS, 20],
  ["groq-key", "gsk_", LETTERS, 40],
  ["xai-key", "xai-", LETTERS, 60],
  ["perplexity-key", "pplx-", LETTERS, 40],
  ["nvidia-key", "nvapi-", WORD, 50],
  ["huggingface-token", "hf_", LETTERS, 30],
  ["huggingface-token", "api_org_", LETTERS, 30],
  ["replicate-token", "r8_", LETTERS, 37],
  ["langsmith-key", "lsv2_", "[A-Za-z0-9_]", 40],
  ["tavily-key", "tvly-", WORD, 28],
  ["elevenlabs-key", "sk_", HEX, 40],
  ...["xoxa-", "xoxb-", "xoxe-", "xoxo-", "xoxp-", "xoxr-", "xoxs-", "xoxc-", "xoxd-", "xapp-"].map(
    (prefix): TokenRow => ["slack-token", prefix, "[A-Za-z0-9%-]", 20],
  ),
  ["stripe-key", "sk_live_", LETTERS, 16],
  ["stripe-key", "sk_test_", LETTERS, 16],
  ["stripe-key", "rk_live_", LETTERS, 16],
  ["stripe-key", "rk_test_", LETTERS, 16],
  ["webhook-secret", "whsec_", "[A-Za-z0-9+/=]", 24],
  ["mailgun-key", "key-", HEX, 32],
  ["brevo-key", "xkeysib-", "[A-Za-z0-9-]", 60],
  ["npm-token", "npm_", LETTERS, 36],
  ["pypi-token", "pypi-AgE", WORD, 50],
  ["rubygems-key", "rubygems_", HEX, 40],
  ["crates-token", "cio", LETTERS, 32],
  ["nuget-key", "oy2", "[a-z0-9]", 43],
  ["docker-token", "dckr_pat_", WORD, 24],
  ["docker-token", "dckr_oat_", WORD, 24],
  ["digitalocean-token", "dop_v1_", HEX, 60],
  ["digitalocean-token", "doo_v1_", HEX, 60],
  ["digitalocean-token", "dor_v1_", HEX, 60],
  ["heroku-key", "HRKU-", WORD, 36],
  ["netlify-token", "nfp_", LETTERS, 36],
  ["supabase-key", "sbp_", HEX, 40],
  ["supabase-key", "sb_secret_", WORD, 20],
  ["planetscale-token", "pscale_tkn_", "[A-Za-z0-9_=.-]", 32],
  ["planetscale-token", "pscale_pw_", "[A-Za-z0-9_=.-]", 32],
  ["planetscale-token", "pscale_oauth_", "[A-Za-z0-9_=.-]", 32],
  ["fly-token", "fm2_", "[A-Za-z0-9_=+/.-]", 60],
  ["cloudflare-origin-key", "v1.0-", "[0-9a-f-]", 100],
  ["newrelic-key", "NRAK-", "[A-Z0-9]", 27],
  ["newrelic-key", "NRII-", WORD, 32],
  ["sentry-token", "sntryu_", HEX, 60],
  ["sentry-token", "sntrys_", "[A-Za-z0-9_=+/-]", 60],
  ["grafana-token", "glsa_", "[A-Za-z0-9_]", 40],
  ["grafana-token", "glc_", "[A-Za-z0-9+/=]", 32],
  ["posthog-key", "phx_", LETTERS, 32],
  ["linear-key", "lin_api_", LETTERS, 32],
  ["linear-key", "lin_oauth_", LETTERS, 32],
  ["notion-token", "ntn_", LETTERS, 40],
  ["notion-token", "secret_", LETTERS, 43],
  ["figma-token", "figd_", WORD, 36],
  ["shopify-token", "shpat_", "[0-9a-fA-F]", 32],
  ["shopify-token", "shpca_", "[0-9a-fA-F]", 32],
  ["shopify-token", "shppa_", "[0-9a-fA-F]", 32],
  ["shopify-token", "shpss_", "[0-9a-fA-F]", 32],
  ["square-token", "sq0atp-", WORD, 22],
  ["square-token", "sq0csp-", WORD, 22],
  ["square-token", "EAAA", WORD, 60],
  ["facebook-token", "EAACEdEose0cBA", LETTERS, 20],
  ["braintree-token", "access_token$production$", "[a-z0-9$]", 40],
  ["databricks-token", "dapi", HEX, 32],
  ["vault-token", "hvs.", WORD, 24],
  ["vault-token", "hvb.", WORD, 24],
  ["vault-token", "hvr.", WORD, 24],
  ...["dp.pt.", "dp.st.", "dp.ct.", "dp.sa.", "dp.scim.", "dp.audit."].map(
    (prefix): TokenRow => ["doppler-token", prefix, "[A-Za-z0-9_.-]", 40],
  ),
  ["pulumi-token", "pul-", HEX, 40],
  ["postman-key", "PMAK-", "[0-9a-f-]", 50],
  ["dynatrace-token", "dt0c01.", "[A-Z0-9.]", 80],
  ["circleci-token", "CCIPAT_", "[A-Za-z0-9_]", 40],
  ["buildkite-token", "bkua_", HEX, 40],
  ["tailscale-key", "tskey-", WORD, 24],
  ["sonar-token", "sqp_", HEX, 40],
  ["sonar-token", "squ_", HEX, 40],
  ["contentful-token", "CFPAT-", WORD, 40],
  ["hubspot-token", "pat-na1-", "[0-9a-f-]", 36],
  ["hubspot-token", "pat-eu1-", "[0-9a-f-]", 36],
  ["onepassword-token", "ops_eyJ", WORD, 60],
  ["alibaba-key", "LTAI", LETTERS, 20],
  ["age-secret-key", "AGE-SECRET-KEY-1", "[A-Z0-9]", 58],
];

/** Credentials with more structure than a prefix and one kind of characters. */
const shapes: readonly (readonly [id: string, anchors: readonly string[], match: string])[] = [
  ["aws-access-key-id", ["AKIA", "ASIA", "ABIA", "ACCA"], "(?<![A-Z0-9])A[KSBC][IC]A[A-Z2-7]{16}(?![A-Z0-9])"],
  [
    "aws-secret-key",
    ["AKIA", "ASIA"],
    String.raw`(A[KS]IA[A-Z2-7]{16}(?![A-Z0-9])[^]{1,80}?)(?<![A-Za-z0-9/+])(?=[^\s]{0,39}\d)[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])`,
  ],
  [
    "azure-client-secret",
    [..."0123456789"].map((digit) => `${digit}Q~`),
    "(?<=[A-Za-z0-9_~.-]{3})[0-9]Q~[A-Za-z0-9_~.-]{31,34}(?![A-Za-z0-9_~])",
  ],
  [
    "slack-webhook",
    ["hooks.slack.com/"],
    `(hooks\\.slack\\.com/(?:services|workflows|triggers)/)[A-Za-z0-9/_+-]{20,90}`,
  ],
  ["discord-webhook", ["/api/webhooks/"], `(/api/webhooks/[0-9]{15,22}/)${WORD}{50,90}`],
  ["discord-token", encodedDigits(), `${START}[MNO][DTjz][A-Za-z0-9_-]{21,26}\\.${WORD}{6}\\.${WORD}{27,40}`],
  ["telegram-token", [":AA"], `(?<=(?<![0-9])[0-9]{8,10})(:)AA${WORD}{33}(?!${WORD})`],
  ["sendgrid-key", ["SG."], `SG\\.${WORD}{16,32}\\.${WORD}{32,64}`],
  ["airtable-token", ["pat"], `pat${LETTERS}{14}\\.${HEX}{64}`],
  ["terraform-token", [".atlasv1."], `(?<=${LETTERS}{14})\\.atlasv1\\.${WORD}{60,70}`],
  ["jwt", ["eyJ"], `${START}(?<!-)eyJ${WORD}{10,4000}\\.eyJ${WORD}{10,8000}(?:\\.${WORD}{0,1000})?`],
  ["azure-storage-key", ["AccountKey="], `(AccountKey=)[A-Za-z0-9+/%]{40,100}={0,2}`],
  ["azure-sas", ["sig="], `(sig=)[A-Za-z0-9%+/_-]{43,120}={0,2}`],
  ["twitter-bearer", ["AAAAAAAAAAAAAAAAAAAA"], "(?<![A-Za-z0-9+/])A{20,30}[A-Za-z0-9%]{60,150}"],
];

/** Returns how the base64 of three digits begins: a Discord token starts with a numeric id. */
function encodedDigits(): string[] {
  const first = ["MD", "MT", "Mj", "Mz", "ND", "NT", "Nj", "Nz", "OD", "OT"];
  return first.flatMap((pair) =>
    [..."AEIMQUYcgk"].flatMap((third) => [..."wxyz012345"].map((last) => pair + third + last)),
  );
}

/** Prefixes that are also ordinary letters inside words: they count only at the beginning of a word. */
const needsStart =
  /^(?:sk-|sk_|r8_|hf_|cio|oy2|key-|dapi|EAAA|LTAI|ABSK|ATBB|hv[sbr]\.|v1\.0-|1\/\/0|pul-|xai-|secret_|glc_)/;

export const shapePatterns: readonly SecretPattern[] = [...tokens.map(tokenPattern), ...shapes.map(shapePattern)];

function tokenPattern([id, prefix, body, least]: TokenRow): SecretPattern {
  const begin = (): string => `${needsStart.test(prefix) ? START : ""}${escapePattern(prefix)}`;
  return withExpressions({
    id,
    anchors: [prefix],
    match: () => `${begin()}${body}{${least},${MAX_LENGTH}}`,
    open: () => `${begin()}${body}{0,${MAX_LENGTH}}$`,
    accept: (secret) => isVaried(secret.slice(prefix.length)),
  });
}

function shapePattern([id, anchors, match]: (typeof shapes)[number]): SecretPattern {
  const nearby = id === "aws-secret-key" ? "[^]{0,144}" : id === "jwt" ? "[\\w.-]{0,13100}" : "[\\w.:/+=~%-]{0,300}";
  return withExpressions({
    id,
    anchors,
    match: () => match,
    open: () => `${nearby}$`,
    accept: (secret, lead) => isVaried(secret.slice(lead === "" ? 4 : 0)),
  });
}

/** Most are never used, so each expression is built when its anchor is first found. */
function withExpressions(
  row: Omit<SecretPattern, "match" | "open"> & { match(): string; open(): string },
): SecretPattern {
  let match: RegExp | undefined;
  let open: RegExp | undefined;
  return {
    ...row,
    get match() {
      match ??= new RegExp(row.match(), "y");
      return match;
    },
    get open() {
      open ??= new RegExp(row.open(), "y");
      return open;
    },
  };
}

/** False for `xxxxxxxx`, `00000000` or dots, as in examples. */
function isVaried(body: string): boolean {
  return new Set(body.slice(0, 200)).size >= 6;
}

function escapePattern(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\/-]/g, "\\$&");
}
