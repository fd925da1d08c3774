/** Text of others inside a prompt: between tags of ours, which it can neither close nor imitate. */
import { sanitise } from "../lib/text.ts";

export { quoted } from "../lib/quoting.ts";

/** `text` has been quoted before; the attributes may be anything. */
export function wrapped(tag: string, attributes: Readonly<Record<string, string | undefined>>, text: string): string {
  const shown = Object.entries(attributes).flatMap(([name, value]) =>
    value === undefined ? [] : [` ${name}="${attribute(value)}"`],
  );
  return `<${tag}${shown.join("")}>\n${text}\n</${tag}>`;
}

const MAX_ATTRIBUTE_CHARACTERS = 400;

function attribute(value: string): string {
  return sanitise(value)
    .replace(/\s+/g, " ")
    .slice(0, MAX_ATTRIBUTE_CHARACTERS)
    .replaceAll("&", "&amp;")
    .replaceAll('"', "&quot;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;");
}
