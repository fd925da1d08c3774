import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { LocalMemory } from "../../src/context/memory/local.ts";
import type { FactDraft, MemoryPorts } from "../../src/context/memory/memory.ts";
import { openLocalMemory } from "../../src/context/memory/open.ts";
import { type Disk, nodeDisk } from "../../src/lib/node/disk.ts";
import { createRedactor } from "../../src/lib/redact/redact.ts";
import { type Stamp, systemStamp } from "../../src/lib/stamp.ts";

export const KNOWN_SECRET = "hunter2-but-much-longer-9931";
/** Has the shape of a credential, and opens nothing. */
export const SHAPED_SECRET = ["ghp", "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"].join("_");

export function ports(changes: Partial<MemoryPorts> = {}): MemoryPorts {
  const redactor = createRedactor({ values: [{ name: "DEPLOY_PASSWORD", value: KNOWN_SECRET }] });
  return { disk: nodeDisk, stamp: systemStamp, redactor, ...changes };
}

export function localAt(
  stateRoot: string,
  cwd: string,
  changes: { disk?: Disk; stamp?: Stamp; isTrusted?: boolean } = {},
): LocalMemory {
  const { isTrusted = false, ...rest } = changes;
  mkdirSync(cwd, { recursive: true });
  return openLocalMemory({ stateRoot, cwd, isTrusted, ports: ports(rest) });
}

export function draft(fact: string, changes: Partial<FactDraft> = {}): FactDraft {
  return {
    subject: "testing",
    fact,
    citations: "package.json:12",
    reason: "Later sessions run the tests too.",
    scope: "repository",
    author: "agent",
    source: { kind: "tool", detail: "session-1" },
    status: "proposed",
    ...changes,
  };
}

/** A person said yes to this. */
export const accepted = (fact: string, changes: Partial<FactDraft> = {}): FactDraft =>
  draft(fact, { status: "accepted", ...changes });

export function putFile(path: string, content: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
}

/** What git leaves behind, as far as memories look at it. */
export function putRepository(folder: string, origin?: string): void {
  const remote = origin === undefined ? "" : `[remote "origin"]\n\turl = ${origin}\n`;
  putFile(join(folder, ".git", "config"), `[core]\n\tbare = false\n${remote}`);
  putFile(join(folder, ".git", "HEAD"), "ref: refs/heads/main\n");
}

export async function toldAt(memory: LocalMemory): Promise<string> {
  return (await memory.recall()).text ?? "";
}
