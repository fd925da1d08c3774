/**
 * Facts that are stored with a repository, in `.github/copilot-memories.jsonl`; off by default. Anyone who can change
 * the repository can write there, so its facts count only as proposals. The user's accepted facts are in the journal
 * under the home. The file is written at the end of a session, only with facts accepted in it.
 */

import { join } from "node:path";
import * as z from "zod";
import { defined } from "../../lib/defined.ts";
import { isDeeperThan, isObject, parseJson, prototypeKeys } from "../../lib/json.ts";
import { openForWriting } from "../../lib/node/paths-write.ts";
import { readSmallFile } from "../../lib/node/small-file.ts";
import { plural } from "../../lib/text.ts";
import { contentProblem, pickContent, plainContent, sameness } from "./content.ts";
import type { LocalMemory } from "./local.ts";
import { type FactContent, type MemoryPorts, type MemoryStore, memoryLimits } from "./memory.ts";

export const REPOSITORY_FILE = join(".github", "copilot-memories.jsonl");

/** Merges facts that say the same. Its result is validated like any untrusted input. */
export type Optimise = (facts: readonly FactContent[]) => Promise<readonly FactContent[]>;

export interface RepositoryFileOptions {
  /** Real path of the work tree. */
  readonly root: string;
  readonly local: LocalMemory;
  readonly ports: MemoryPorts;
  readonly optimise?: Optimise;
}

const MAX_BYTES = 1024 * 1024;
const MAX_LINES = 2000;
const MAX_DEPTH = 8;
/** Maximum share of facts that a merge may drop. */
const MAX_DROPPED_SHARE = 0.5;

export interface LineRecord extends FactContent {
  readonly id: string;
}

export function repositoryFileMemory({ root, local, ports, optimise }: RepositoryFileOptions): MemoryStore {
  const held = new Set<string>();
  return {
    kind: "repository-file",
    scopes: ["repository"],
    hasVotes: false,
    async recall(signal) {
      const recall = await local.recall(signal);
      const { records, notices } = readRepositoryFile(root);
      const known = new Set(local.journals.flatMap(({ read }) => safeFacts(read)).map(sameness));
      const unknown = records.filter(({ fact }) => !known.has(sameness(fact))).length;
      const waiting = `${plural(unknown, "fact")} in ${REPOSITORY_FILE} not in your memory. To review: troupe memory import ${REPOSITORY_FILE}`;
      return { ...recall, notices: [...recall.notices, ...notices, ...(unknown > 0 ? [waiting] : [])] };
    },
    async store(draft, signal) {
      const stored = await local.store(draft, signal);
      held.add(stored.id);
      return stored;
    },
    vote: (vote, signal) => local.vote(vote, signal),
    used: (ids) => local.used(ids),
    async close() {
      const accepted = local.journals
        .filter(({ scope }) => scope === "repository")
        .flatMap(({ read }) => [...read().facts.values()])
        .filter(({ id, status }) => held.has(id) && status === "accepted");
      if (accepted.length > 0) await writeRepositoryFile({ root, added: accepted, ports, ...defined({ optimise }) });
      held.clear();
      await local.close();
    },
  };
}

/** Returns the texts of the facts in the repository's file. */
export function factsInRepository(root: string): string[] {
  return readRepositoryFile(root).records.map(({ fact }) => fact);
}

/** Reads the file. Skips lines that cannot be parsed. */
function readRepositoryFile(root: string): { records: LineRecord[]; lines: string[]; notices: string[] } {
  const path = join(root, REPOSITORY_FILE);
  const file = readSmallFile(path, { maxBytes: MAX_BYTES, below: root });
  if (file.kind === "missing") return { records: [], lines: [], notices: [] };
  if (file.kind === "refused")
    return { records: [], lines: [], notices: [`${REPOSITORY_FILE} is not used: it ${file.reason}.`] };
  return {
    ...parseLines(file.text, REPOSITORY_FILE),
    lines: file.text.split("\n").filter((line) => line.trim() !== ""),
  };
}

/** Parses one JSON object per line. This is also the format of `troupe memory export`. */
export function parseLines(text: string, name: string): { records: LineRecord[]; notices: string[] } {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  const records = lines.slice(0, MAX_LINES).flatMap((line) => parseRecord(line) ?? []);
  const bad = Math.min(lines.length, MAX_LINES) - records.length;
  const notices = [
    ...(bad > 0
      ? [`${name}: ${plural(bad, "line")} could not be understood and ${bad === 1 ? "was" : "were"} left out.`]
      : []),
    ...(lines.length > MAX_LINES ? [`${name}: only the first ${MAX_LINES} lines were read.`] : []),
  ];
  return { records, notices };
}

const Line = z.lazy(() =>
  z.object({
    id: z.string().max(100).default(""),
    subject: z.string().min(1).max(memoryLimits.subject),
    fact: z.string().min(1).max(memoryLimits.fact),
    citations: z.union([z.string(), z.array(z.string()).transform((all) => all.join(", "))]).default(""),
    reason: z.string().max(memoryLimits.reason).default(""),
    status: z.string().exactOptional(),
  }),
);

function parseRecord(line: string): LineRecord | undefined {
  if (isDeeperThan(line, MAX_DEPTH)) return undefined;
  const json = parseJson(line);
  if (!json.ok || !isObject(json.value) || Object.keys(json.value).some((key) => prototypeKeys.has(key)))
    return undefined;
  const parsed = Line.safeParse(json.value);
  if (!parsed.success || parsed.data.status === "retracted") return undefined;
  const { id, ...content } = parsed.data;
  const plain = plainContent(content);
  return plain.citations.length > memoryLimits.citations ? undefined : { id, ...plain };
}

/** Adds facts to the file. Existing lines stay unchanged, including unknown ones, unless a merge replaces all. */
async function writeRepositoryFile(request: {
  root: string;
  added: readonly (FactContent & { id: string; source: object })[];
  ports: MemoryPorts;
  optimise?: Optimise;
}): Promise<void> {
  const { root, added, ports, optimise } = request;
  const { records, lines } = readRepositoryFile(root);
  const known = new Set(records.map(({ fact }) => sameness(fact)));
  const fresh = added.filter(({ fact }) => !known.has(sameness(fact)));
  const union = [...records, ...fresh];
  const merged = optimise && (await optimised(union, optimise, ports));
  const content = merged
    ? merged.map((fact) => encodeLine({ id: ports.stamp.id("fact").slice(0, 8), ...fact }))
    : [...lines, ...fresh.map(encodeLine)];
  if (fresh.length === 0 && merged === undefined) return;
  const target = await openForWriting(join(root, REPOSITORY_FILE), { cwd: root, roots: [root], disk: ports.disk });
  try {
    await target.write(Buffer.from(`${content.join("\n")}\n`));
  } finally {
    await target.close();
  }
}

async function optimised(
  union: readonly FactContent[],
  optimise: Optimise,
  { redactor }: MemoryPorts,
): Promise<FactContent[] | undefined> {
  try {
    const facts = (await optimise(union.map(pickContent))).map((fact) => plainContent(pickContent(fact)));
    const isTooFew = facts.length < union.length * (1 - MAX_DROPPED_SHARE);
    if (isTooFew || facts.length > union.length) return undefined;
    return facts.some((fact) => contentProblem(fact, redactor) !== undefined) ? undefined : facts;
  } catch {
    return undefined; // the unmerged facts are as good, only longer
  }
}

function encodeLine({
  id,
  subject,
  fact,
  citations,
  reason,
  source,
}: FactContent & { id: string; source?: object }): string {
  return JSON.stringify({ id, subject, fact, citations, reason, source: source ?? { kind: "merged" } });
}

function safeFacts(read: LocalMemory["journals"][number]["read"]): string[] {
  try {
    return [...read().facts.values()].map(({ fact }) => fact);
  } catch {
    return [];
  }
}
