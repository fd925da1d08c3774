/** Names of MCP tools for the model. Model APIs allow only a few characters, and each name must be unique. */
import type { McpToolDefinition } from "./server.ts";

const MAX_NAME_CHARACTERS = 64;

/**
 * Returns one name per definition, in order: `<server>-<tool>`. A name that is taken by another tool or in `reserved`
 * gets a number; existing names never change.
 */
export function modelNames(definitions: readonly McpToolDefinition[], reserved: Iterable<string> = []): string[] {
  const taken = new Set(reserved);
  return definitions.map(({ server, name }) => {
    const wanted = modelName(server, name);
    let given = wanted;
    for (let number = 2; taken.has(given); number++) {
      const suffix = `-${number}`;
      given = `${wanted.slice(0, MAX_NAME_CHARACTERS - suffix.length)}${suffix}`;
    }
    taken.add(given);
    return given;
  });
}

function modelName(server: string, tool: string): string {
  return `${spelled(server)}-${spelled(tool)}`.slice(0, MAX_NAME_CHARACTERS);
}

function spelled(text: string): string {
  const ascii = /[^\x00-\x7f]/.test(text) ? `xn--${punycode(text)}` : text;
  return ascii.replace(/[^A-Za-z0-9_-]/g, "_");
}

/** RFC 3492, encoding only. */
function punycode(text: string): string {
  const points = [...text].map((character) => character.codePointAt(0) ?? 0);
  const basic = points.filter((point) => point < 128);
  let output = String.fromCodePoint(...basic) + (basic.length > 0 ? "-" : "");
  let [code, delta, bias, handled] = [128, 0, 72, basic.length];
  while (handled < points.length) {
    const next = Math.min(...points.filter((point) => point >= code));
    delta += (next - code) * (handled + 1);
    code = next;
    for (const point of points) {
      if (point < code) delta++;
      if (point !== code) continue;
      output += digitsOf(delta, bias);
      bias = adaptBias(delta, { count: handled + 1, isFirst: handled === basic.length });
      delta = 0;
      handled++;
    }
    delta++;
    code++;
  }
  return output;
}

const BASE = 36;
const DIGITS = "abcdefghijklmnopqrstuvwxyz0123456789";

function digitsOf(delta: number, bias: number): string {
  let digits = "";
  let rest = delta;
  for (let factor = BASE; ; factor += BASE) {
    const threshold = Math.min(26, Math.max(1, factor - bias));
    if (rest < threshold) return digits + DIGITS.charAt(rest);
    digits += DIGITS.charAt(threshold + ((rest - threshold) % (BASE - threshold)));
    rest = Math.floor((rest - threshold) / (BASE - threshold));
  }
}

function adaptBias(delta: number, { count, isFirst }: { count: number; isFirst: boolean }): number {
  let rest = Math.floor(delta / (isFirst ? 700 : 2));
  rest += Math.floor(rest / count);
  let bias = 0;
  for (; rest > 455; bias += BASE) rest = Math.floor(rest / 35);
  return bias + Math.floor((BASE * rest) / (rest + 38));
}
