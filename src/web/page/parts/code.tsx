/** Code, highlighted when the browser has nothing else to do. The text is complete before that. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";

const MAX_HIGHLIGHTED = 20_000;

interface Piece {
  readonly text: string;
  readonly kind: string;
}

export function Code({ text, language }: { readonly text: string; readonly language: string }): JSX.Element {
  const [pieces, setPieces] = useState<{ readonly of: string; readonly all: readonly Piece[] } | undefined>();
  const name = languageOf(language);
  useEffect(() => {
    if (name === undefined || text.length > MAX_HIGHLIGHTED) return undefined;
    let isGone = false;
    const idle = whenIdle(() => {
      void highlight(text, name).then((all) => {
        if (!isGone && all) setPieces({ of: text, all });
      });
    });
    return () => {
      isGone = true;
      idle();
    };
  }, [text, name]);
  const content =
    pieces?.of === text
      ? pieces.all.map(({ text: part, kind }, index) => (
          <span key={index} class={`hl-${kind}`}>
            {part}
          </span>
        ))
      : text;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: code that scrolls sideways must be reachable by keyboard
    <pre class="code" tabIndex={0}>
      <code>{content}</code>
    </pre>
  );
}

async function highlight(text: string, name: string): Promise<readonly Piece[] | undefined> {
  try {
    const { tokenize } = await import("@speed-highlight/core");
    const all: Piece[] = [];
    await tokenize(text, name as Parameters<typeof tokenize>[1], (part, kind) => {
      if (part !== "") all.push({ text: part, kind: kind ?? "plain" });
    });
    // A highlighter that loses text must not be shown.
    return all.map((piece) => piece.text).join("") === text ? all : undefined;
  } catch {
    return undefined;
  }
}

const known: Readonly<Record<string, string>> = {
  bash: "bash",
  sh: "bash",
  shell: "bash",
  zsh: "bash",
  c: "c",
  h: "c",
  css: "css",
  diff: "diff",
  patch: "diff",
  docker: "docker",
  dockerfile: "docker",
  go: "go",
  html: "html",
  http: "http",
  ini: "ini",
  java: "java",
  js: "js",
  jsx: "js",
  javascript: "js",
  mjs: "js",
  json: "json",
  lua: "lua",
  make: "make",
  md: "md",
  py: "py",
  python: "py",
  pl: "pl",
  rs: "rs",
  rust: "rs",
  sql: "sql",
  toml: "toml",
  ts: "ts",
  tsx: "ts",
  typescript: "ts",
  xml: "xml",
  yaml: "yaml",
  yml: "yaml",
};

const languageOf = (word: string): string | undefined => {
  const name = word.trim().toLowerCase().split(/\s/)[0] ?? "";
  return Object.hasOwn(known, name) ? known[name] : undefined;
};

function whenIdle(work: () => void): () => void {
  if (typeof requestIdleCallback !== "function") {
    const timer = setTimeout(work, 50);
    return () => clearTimeout(timer);
  }
  const handle = requestIdleCallback(work, { timeout: 2_000 });
  return () => cancelIdleCallback(handle);
}
