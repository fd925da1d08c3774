/** Names of keys that a text cannot contain: "{enter}", "{ctrl-c}". Anything else in braces is typed literally. */
const KEYS: Readonly<Record<string, string>> = {
  enter: "\r",
  tab: "\t",
  esc: "\u001b",
  escape: "\u001b",
  backspace: "\u007f",
  up: "\u001b[A",
  down: "\u001b[B",
  right: "\u001b[C",
  left: "\u001b[D",
  "ctrl-c": "\u0003",
  "ctrl-d": "\u0004",
  "ctrl-z": "\u001a",
};

type Stroke = { readonly kind: "text"; readonly text: string } | { readonly kind: "interrupt" | "end" };

/** Returns the actions for an input. A terminal receives everything as text; on a pipe some keys have no character. */
export function strokes(input: string, { terminal }: { terminal: boolean }): Stroke[] {
  return input
    .split(/(\{[a-z-]+\})/i)
    .filter((part) => part !== "")
    .map((part) => stroke(part, terminal));
}

function stroke(part: string, terminal: boolean): Stroke {
  const name = part.startsWith("{") ? part.slice(1, -1).toLowerCase() : "";
  const text = KEYS[name] ?? part;
  if (terminal || KEYS[name] === undefined) return { kind: "text", text };
  if (name === "ctrl-c") return { kind: "interrupt" };
  if (name === "ctrl-d") return { kind: "end" };
  return { kind: "text", text: name === "enter" ? "\n" : text };
}
