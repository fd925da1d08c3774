/** One self-contained HTML file with a session inside: the page of the dashboard and the log. It replays offline. */
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { createRedactor } from "../lib/redact/redact.ts";
import { secretValuesOf } from "../lib/redact/redact-values.ts";
import { TroupeError } from "../protocol/errors.ts";
import type { SessionEvent } from "../protocol/event.ts";

export interface ExportOptions {
  readonly title: string;
  readonly events: AsyncIterable<SessionEvent>;
  /** The folder of the page's files. */
  readonly assets: string;
  /** Values of secrets in it are taken out, and everything that looks like one. */
  readonly environment: Readonly<Record<string, string | undefined>>;
}

const MAX_CHARACTERS = 256 * 1024 * 1024;

/** Yields the file in pieces. Throws before the first piece when the page was not built. */
export async function* htmlOf({ title, events, assets, environment }: ExportOptions): AsyncGenerator<string> {
  const read = (name: string): Promise<string> =>
    readFile(join(assets, name), "utf8").catch((cause: unknown) => {
      throw new TroupeError("failed", `The files of the page are not in ${assets}.`, {
        hint: "Install the package again, or run: npm run build",
        cause,
      });
    });
  const [script, style] = await Promise.all([read("exported.js"), read("style.css")]);
  const policy = [
    "default-src 'none'",
    `script-src ${hashOf(script)}`,
    `style-src ${hashOf(style)}`,
    "img-src data:",
    "base-uri 'none'",
    "form-action 'none'",
    "require-trusted-types-for 'script'",
  ].join("; ");
  yield `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escaped(title)}</title>
<style>${style}</style>
</head>
<body>
<div id="app"></div>
<script type="application/json" id="log">[`;
  const redactor = createRedactor({ values: secretValuesOf(environment) });
  let size = 0;
  for await (const event of events) {
    const text = inert(JSON.stringify(redactor.json(event)));
    yield size === 0 ? text : `,\n${text}`;
    size += text.length;
    if (size > MAX_CHARACTERS) throw new TroupeError("limit", "The session is too large for one file.");
  }
  yield `]</script>
<script>${script}</script>
</body>
</html>
`;
}

const hashOf = (text: string): string => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

/** JSON that cannot end the element it stands in. */
const inert = (json: string): string =>
  json.replaceAll("<", "\\u003c").replaceAll("\u2028", "\\u2028").replaceAll("\u2029", "\\u2029");

const escaped = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
