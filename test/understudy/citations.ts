/** Everything an answer cites must be there, and say what the answer says it says. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";

/** Checks the whole answer and returns how many citations it holds. */
export function checkCitations(cwd: string, answer: string): number {
  const rows = answer.split("\n");
  let count = 0;
  for (const [index, row] of rows.entries()) {
    for (const [, path = "", line = ""] of row.matchAll(/`([^`\s]+):(\d+)`/g)) {
      count++;
      expect(lineAt(cwd, path, Number(line)), `${path}:${line} is cited`).toBeDefined();
    }
    const hit = /^- `([^`\s]+):(\d+)` {2}(?:`` (.*?) ``|`([^`]*)`)/.exec(row);
    if (hit !== null) {
      const quoted = (hit[3] ?? hit[4] ?? "").replace(/…$/, "");
      expect(lineAt(cwd, hit[1] ?? "", Number(hit[2]))).toContain(quoted);
    }
    const said = /– (?!declares|[\w-]+ in `)([^`“]+?)[.…]* `([^`\s]+):(\d+)`/.exec(row);
    if (said !== null && !row.includes("; `")) {
      const start = (said[1] ?? "").split(" ").slice(0, 2).join(" ");
      expect(lineAt(cwd, said[2] ?? "", Number(said[3]))).toContain(start);
    }
    const block = /^`([^`\s]+):\d+`$/.exec(row);
    if (block !== null && /^`{3,}/.test(rows[index + 1] ?? "")) {
      for (let next = index + 2; !/^`{3,}$/.test(rows[next] ?? "```"); next++) {
        const [, number = "", text = ""] = /^ *(\d+)(?: {2}(.*))?$/.exec(rows[next] ?? "") ?? [];
        expect(lineAt(cwd, block[1] ?? "", Number(number))?.trimEnd()).toContain(text.replace(/…$/, "").trimEnd());
      }
    }
  }
  return count;
}

function lineAt(cwd: string, path: string, line: number): string | undefined {
  return readFileSync(join(cwd, path), "utf8").split("\n")[line - 1];
}
