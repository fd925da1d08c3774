/** Commands that write to paths, through links, after changes of folder, and by values attached to options. */
import type { Random } from "./generate.ts";

/** What the folder of the commands holds beside them; a text is the target of a link. */
export const LINKS: Readonly<Record<string, string>> = {
  l: ".git/hooks",
  o: "../out",
  d: "../out/new",
  f: ".git/config",
  k: "../out/kept",
  s: "sub/deep",
  up: "..",
  here: ".",
  "sub/back": "../.git",
  "sub/deep/root": "../..",
};
const NAMES = [
  ...Object.keys(LINKS),
  "sub",
  "sub/deep",
  "a",
  "b",
  "new",
  "config",
  "pre-commit",
  ".git",
  ".vscode",
  "out",
];

function pick<T>(next: Random, items: readonly T[]): T {
  const item = items[Math.floor(next() * items.length)];
  if (item === undefined) throw new Error("nothing to pick from");
  return item;
}

/** Links, and `..` behind them, are more frequent than chance would have it. */
function path(next: Random): string {
  let text = pick(next, next() < 0.5 ? Object.keys(LINKS) : NAMES);
  for (let count = 0; count < 3 && next() < 0.5; count++) text += `/${next() < 0.5 ? ".." : pick(next, NAMES)}`;
  return next() < 0.1 ? `./${text}` : text;
}

function write(next: Random): string {
  const to = path(next);
  const forms = [
    `echo x ${pick(next, [">", ">>", ">|", "&>", "1>", "<>"])} ${to}`,
    `echo x | tee ${to}`,
    `touch ${to}`,
    `cp seed ${to}`,
    `cp -t ${to} seed`,
    `cp --target-directory=${to} seed`,
    `dd if=seed of=${to} status=none`,
    `sort -o${to} seed`,
    `sort --output=${to} seed`,
    `mkdir ${to}`,
    `ln -s ${path(next)} ${to}`,
    `mv ${path(next)} ${to}`,
  ];
  return pick(next, forms);
}

function enter(next: Random): string {
  return `${pick(next, ["cd", "cd", "cd -P", "pushd"])} ${pick(next, [path(next), path(next), "-", "..", ""])}`.trim();
}

export function generatePathCommand(next: Random): string {
  let text = next() < 0.4 ? enter(next) : write(next);
  for (let count = 0; count < 3 && next() < 0.5; count++) {
    text += pick(next, [" && ", " ; ", " || ", "\n", " | ", " & "]) + (next() < 0.35 ? enter(next) : write(next));
  }
  return next() < 0.1 ? `(${text})` : text;
}
