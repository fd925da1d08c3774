/** Finds the parts of a repository that a line of code imports. */
import { folderOf, languageOf } from "./languages.ts";
import { importsIn } from "./read-source.ts";

/** Returns the path of an import, whose extension is uncertain. Returns `undefined` for a path outside the project. */
export function importedPath(from: string, text: string, names: readonly string[] = []): string | undefined {
  const target = importsIn(from, [{ number: 1, text }])[0]?.target;
  if (target === undefined) return undefined;
  if (/^\.{1,2}\//.test(target)) return joinPath(folderOf(from), target);
  const family = languageOf(from)?.family;
  if (family === "python" && /^\w/.test(target)) return target.replaceAll(".", "/");
  const name = family === "go" ? names.find((one) => target.startsWith(`${one}/`)) : undefined;
  return name === undefined ? undefined : target.slice(name.length + 1);
}

/** Returns the innermost of `folders` that contains the path. */
export function folderHolding(path: string, folders: readonly string[]): string | undefined {
  const holding = folders.filter((folder) => path === folder || path.startsWith(`${folder}/`));
  return holding.sort((a, b) => b.length - a.length)[0];
}

function joinPath(folder: string, relative: string): string | undefined {
  const steps = folder === "" ? [] : folder.split("/");
  for (const step of relative.split("/")) {
    if (step === "..") {
      if (steps.pop() === undefined) return undefined;
    } else if (step !== "." && step !== "") steps.push(step);
  }
  return steps.join("/");
}
