/** Credentials of many makers, made up anew for each run: none of them stands in a file, and none was ever real. */

export interface Planted {
  readonly shape: string;
  /** As it would stand in a text; `secret` is the part that must not survive. */
  readonly text: string;
  readonly secret: string;
}

const LOWER = "abcdefghijklmnopqrstuvwxyz";
const DIGITS = "0123456789";
const UPPER = LOWER.toUpperCase();
const ALNUM = `${UPPER}${LOWER}${DIGITS}`;
const WORD = `${ALNUM}_-`;
const HEX = "0123456789abcdef";
const BASE64 = `${ALNUM}+/`;

/** The same numbers for the same seed. */
export function numbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

function randomText(alphabet: string, length: number, next: () => number): string {
  return Array.from({ length }, () => alphabet[Math.floor(next() * alphabet.length)] ?? "").join("");
}

/** One of every shape. */
export function plantedSecrets(seed: number): Planted[] {
  const next = numbers(seed);
  const of = (alphabet: string, length: number): string => randomText(alphabet, length, next);
  const bare = (shape: string, secret: string): Planted => ({ shape, text: secret, secret });
  const within = (shape: string, secret: string, text: (secret: string) => string): Planted => ({
    shape,
    secret,
    text: text(secret),
  });
  const jwtPart = (): string => `eyJ${of(WORD, 40)}`;
  const keyBody = (): string => Array.from({ length: 12 }, () => of(BASE64, 64)).join("\n");
  const dashes = "-".repeat(5);
  const block = (kind: string): string => {
    return `${dashes}BEGIN ${kind}${dashes}\n${keyBody()}\n${dashes}END ${kind}${dashes}`;
  };
  const uuid = [8, 4, 4, 4, 12].map((length) => of(HEX, length)).join("-");
  return [
    ...["ghp", "gho", "ghu", "ghs", "ghr"].map((kind) => bare(`github ${kind}`, `${kind}_${of(ALNUM, 36)}`)),
    bare("github fine-grained", `github_pat_${of(ALNUM, 22)}_${of(ALNUM, 59)}`),
    bare("gitlab", `glpat-${of(WORD, 20)}`),
    bare("aws key id", `AKIA${of(`${UPPER}234567`, 16)}`),
    within("aws secret near its id", `${of(BASE64, 38)}7a`, (secret) => `AKIA${of(UPPER, 16)} ${secret}\n`),
    within("aws secret by name", `${of(BASE64, 38)}7a`, (secret) => `aws_secret_access_key = ${secret}`),
    bare("google api key", `AIza${of(WORD, 35)}`),
    bare("google client secret", `GOCSPX-${of(WORD, 28)}`),
    within("google service account", keyBody(), (secret) =>
      JSON.stringify({
        private_key: `${dashes}BEGIN PRIVATE KEY${dashes}\n${secret}\n${dashes}END PRIVATE KEY${dashes}`,
      }),
    ),
    within("azure storage", `${of(BASE64, 86)}==`, (secret) => `AccountName=a;AccountKey=${secret};EndpointSuffix=x`),
    within("azure shared access", of(ALNUM, 43), (secret) => `https://a.blob.core.windows.net/c?sv=1&sig=${secret}%3D`),
    bare("azure client secret", `${of(ALNUM, 3)}8Q~${of(ALNUM, 34)}`),
    ...["proj-", "svcacct-", "admin-", ""].map((kind) => bare(`openai ${kind}`, `sk-${kind}${of(ALNUM, 48)}`)),
    bare("anthropic", `sk-ant-api03-${of(WORD, 93)}AA`),
    bare("openrouter", `sk-or-v1-${of(HEX, 64)}`),
    bare("groq", `gsk_${of(ALNUM, 52)}`),
    within("mistral", of(ALNUM, 32), (secret) => `MISTRAL_API_KEY=${secret}`),
    bare("hugging face", `hf_${of(`${UPPER}${LOWER}`, 34)}`),
    bare("replicate", `r8_${of(ALNUM, 37)}`),
    bare("slack bot", `xoxb-${of(DIGITS, 12)}-${of(DIGITS, 12)}-${of(ALNUM, 24)}`),
    bare("slack user", `xoxp-${of(DIGITS, 12)}-${of(DIGITS, 12)}-${of(HEX, 32)}`),
    bare("slack app", `xapp-1-${of(ALNUM, 11)}-${of(DIGITS, 13)}-${of(HEX, 64)}`),
    within("slack webhook", `T${of(UPPER, 8)}/B${of(UPPER, 8)}/${of(ALNUM, 24)}`, (secret) => {
      return `https://hooks.slack.com/services/${secret}`;
    }),
    bare("discord bot", `${btoa(of(DIGITS, 18)).replaceAll("=", "")}.${of(WORD, 6)}.${of(WORD, 38)}`),
    within("discord webhook", of(WORD, 68), (secret) => `https://discord.com/api/webhooks/${of(DIGITS, 18)}/${secret}`),
    within("telegram", `AA${of(WORD, 33)}`, (secret) => `bot ${of("123456789", 9)}:${secret}`),
    bare("stripe live", `sk_live_${of(ALNUM, 24)}`),
    bare("stripe test", `sk_test_${of(ALNUM, 24)}`),
    bare("stripe restricted", `rk_live_${of(ALNUM, 24)}`),
    bare("stripe webhook", `whsec_${of(ALNUM, 32)}`),
    within("twilio", of(HEX, 32), (secret) => `TWILIO_AUTH_TOKEN: "${secret}"`),
    bare("sendgrid", `SG.${of(WORD, 22)}.${of(WORD, 43)}`),
    bare("mailgun", `key-${of(HEX, 32)}`),
    within("mailchimp", `${of(HEX, 32)}-us14`, (secret) => `MAILCHIMP_KEY=${secret}`),
    bare("npm", `npm_${of(ALNUM, 36)}`),
    bare("pypi", `pypi-AgEIcHlwaS5vcmc${of(WORD, 70)}`),
    bare("rubygems", `rubygems_${of(HEX, 48)}`),
    bare("crates", `cio${of(ALNUM, 32)}`),
    bare("docker hub", `dckr_pat_${of(WORD, 27)}`),
    bare("digitalocean", `dop_v1_${of(HEX, 64)}`),
    within("heroku", uuid, (secret) => `HEROKU_API_KEY=${secret}`),
    within("cloudflare", of(WORD, 40), (secret) => `CLOUDFLARE_API_TOKEN="${secret}"`),
    within("datadog", of(HEX, 40), (secret) => `DD_APP_KEY=${secret}`),
    bare("new relic", `NRAK-${of(`${UPPER}${DIGITS}`, 27)}`),
    within("sentry", of(HEX, 32), (secret) => `https://${secret}@o1.ingest.sentry.io/42`),
    bare("linear", `lin_api_${of(ALNUM, 40)}`),
    bare("notion", `ntn_${of(ALNUM, 46)}`),
    bare("airtable", `pat${of(ALNUM, 14)}.${of(HEX, 64)}`),
    bare("figma", `figd_${of(WORD, 40)}`),
    bare("shopify", `shpat_${of(HEX, 32)}`),
    bare("square", `sq0atp-${of(WORD, 22)}`),
    bare("braintree", `access_token$production$${of(`${LOWER}${DIGITS}`, 16)}$${of(HEX, 32)}`),
    bare("databricks", `dapi${of(HEX, 32)}`),
    bare("vault", `hvs.${of(WORD, 90)}`),
    within("terraform cloud", of(WORD, 67), (secret) => `${of(ALNUM, 14)}.atlasv1.${secret}`),
    bare("doppler", `dp.pt.${of(ALNUM, 43)}`),
    bare("jwt", `${jwtPart()}.${jwtPart()}.${of(WORD, 43)}`),
    ...["PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY", "OPENSSH PRIVATE KEY"].map((kind) =>
      bare(kind, block(kind)),
    ),
    bare("age", `AGE-SECRET-KEY-1${of(`${UPPER}${DIGITS}`, 58)}`),
    ...["postgres", "mysql", "mongodb+srv", "redis", "amqp", "https"].map((scheme) =>
      within(`${scheme} url`, of(ALNUM, 14), (secret) => `${scheme}://worker:${secret}@host.example:1234/name`),
    ),
    within("bearer header", of(WORD, 40), (secret) => `Authorization: Bearer ${secret}`),
    within("basic header", btoa(`worker:${of(ALNUM, 16)}`), (secret) => `authorization: Basic ${secret}`),
    within("password in yaml", `${of(ALNUM, 9)}7aB3x`, (secret) => `  password: ${secret}`),
    within("password on the command line", `${of(ALNUM, 9)}7aB3x`, (secret) => `tool --password ${secret} --quiet`),
    within("password in xml", `${of(ALNUM, 9)}7aB3x`, (secret) => `<password>${secret}</password>`),
    within("client secret in code", of(ALNUM, 24), (secret) => `const clientSecret: string = '${secret}';`),
  ];
}
