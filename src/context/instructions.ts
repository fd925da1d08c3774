/**
 * Custom instructions: files of the user and of the project, collected into one section of the system prompt. Project
 * files are untrusted, so they are quoted and bounded and have no authority.
 */

import { realpathSync } from "node:fs";
import { delimiter, join, resolve } from "node:path";
import { defined } from "../lib/defined.ts";
import { wrapInTag } from "../lib/quoting.ts";
import { plural, sanitise } from "../lib/text.ts";
import type { WorkingDirectory } from "../protocol/event.ts";
import { blockOf, byteLength } from "./instruction-block.ts";
import { exists, filesBelow, filesOf, levelsBetween } from "./instruction-files.ts";
import { NestedInstructions } from "./instruction-nested.ts";
import {
  type InstructionCandidate,
  InstructionReader,
  type InstructionScope,
  type InstructionText,
} from "./instruction-reader.ts";
import { type InstructionReference, referenceLine, type ScopedRule, scopedRule } from "./instruction-rules.ts";
import source from "./instructions.md";
import { namedTexts } from "./named-texts.ts";

export interface InstructionRequest {
  readonly context: WorkingDirectory;
  readonly stateRoot: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Folders in addition to those in the environment. */
  readonly instructionDirectories?: readonly string[];
  /** False: reads nothing, now or later. */
  readonly enabled?: boolean;
  /** Returns false for a project file or an import that the session's tools may not read. */
  readonly mayRead?: (path: string) => boolean;
  /** Receives notices about refused or cut files after the start. */
  readonly onNotice?: (notice: string) => void;
}

interface InstructionFile {
  readonly path: string;
  readonly scope: InstructionScope;
  readonly bytes: number;
  /** The text as the model sees it, before any cut. */
  readonly content: string;
}

export interface Instructions {
  /** The section for the system prompt; empty if there are no instructions. */
  readonly text: string;
  readonly references: readonly InstructionReference[];
  readonly files: readonly InstructionFile[];
  /** For the user: refused, cut or omitted files. */
  readonly notices: readonly string[];
  readonly nested: Nested;
  /** Returns a finder for another agent that has seen only `text`. `root` is set if it works in its own work tree. */
  nestedFor(root?: string): Nested;
}

type Nested = Pick<NestedInstructions, "onFileAccess">;

const MAX_INSTRUCTION_BYTES = 64 * 1024;
const MAX_REFERENCE_BYTES = 8 * 1024;
const MAX_FILES = 200;
const MAX_DIRECTORIES = 16;
const MAX_NOTICES = 50;
const MAX_NOTICE_CHARACTERS = 500;

export async function readInstructions(request: InstructionRequest): Promise<Instructions> {
  if (request.enabled === false) {
    const nested: Nested = { onFileAccess: async () => [] };
    return { text: "", references: [], files: [], notices: [], nested, nestedFor: () => nested };
  }
  const notices = new Set<string>();
  const start = { isOver: false };
  const onNotice = (notice: string): void => {
    const shown = sanitise(notice).slice(0, MAX_NOTICE_CHARACTERS);
    if (start.isOver) request.onNotice?.(shown);
    else if (notices.size < MAX_NOTICES) notices.add(shown);
  };
  const { cwd, gitRoot: root = cwd } = request.context;
  const gathering = new InstructionCollector({
    cwd,
    root,
    onNotice,
    ...defined({ mayRead: request.mayRead }),
  });
  await gatherPersons(gathering, request);
  const levels = levelsBetween(root, cwd);
  await gatherProjects(gathering, levels);
  const { reader, texts, rules } = gathering;
  const { text, told: files } = sectionOf(texts, rules, onNotice);
  start.isOver = true;
  const told = { reader: reader.fork(), rules, onNotice };
  return {
    text,
    references: rules.map(({ path, globs, description }) => ({ path, globs, description })),
    files: files.map(({ path, scope, bytes, body }) => ({ path, scope, bytes, content: body })),
    notices: [...notices],
    nested: new NestedInstructions({ reader, root, known: levels, rules, onNotice }),
    nestedFor: (other = root) =>
      new NestedInstructions({
        ...told,
        reader: told.reader.fork(),
        root: other,
        known: other === root ? levels : [other],
      }),
  };
}

interface InstructionContext {
  readonly cwd: string;
  readonly root: string;
  readonly mayRead?: (path: string) => boolean;
  readonly onNotice: (notice: string) => void;
}

/** Collects texts and rules in prompt order. */
class InstructionCollector {
  readonly context: InstructionContext;
  readonly reader: InstructionReader;
  readonly texts: InstructionText[] = [];
  readonly rules: ScopedRule[] = [];

  constructor(context: InstructionContext) {
    this.context = context;
    this.reader = new InstructionReader(context);
  }

  async addFile(found: InstructionCandidate): Promise<void> {
    const text = await this.reader.read(found);
    if (text !== undefined) await this.#add(text);
  }

  /** Adds a rule. A rule for certain files is only referenced; its globs are relative to `base`. */
  async addRule(found: InstructionCandidate, base: string): Promise<void> {
    const text = await this.reader.read(found);
    const rule = text && scopedRule(text, base, this.context.onNotice);
    if (rule !== undefined) this.rules.push(rule);
    else if (text !== undefined) await this.#add(text);
  }

  async #add(text: InstructionText): Promise<void> {
    if (this.texts.length >= MAX_FILES || !this.reader.claim(text)) return;
    this.texts.push(...(await this.reader.withImports(text)));
  }
}

async function gatherPersons(gathering: InstructionCollector, request: InstructionRequest): Promise<void> {
  const { onNotice, root } = gathering.context;
  const candidateOf = (path: string): InstructionCandidate => ({
    path,
    scope: "user",
    roots: [],
    importRoot: request.stateRoot,
  });
  for (const name of ["copilot-instructions.md", "instructions.md"]) {
    const path = join(request.stateRoot, name);
    if (exists(path)) await gathering.addFile(candidateOf(path));
  }
  const rules = join(request.stateRoot, "instructions");
  const ending = ".instructions.md";
  const paths = exists(rules) ? await filesBelow(rules, { ending, roots: [], onNotice }) : [];
  for (const path of paths) await gathering.addRule(candidateOf(path), root);

  for (const directory of directoriesIn(request, onNotice)) {
    const roots = [directory];
    const given = (path: string): InstructionCandidate => ({ path, scope: "directory", roots, importRoot: directory });
    await gathering.addFile(given(join(directory, "AGENTS.md")));
    const nested = join(directory, ".github/instructions");
    const found = [
      ...(exists(nested) ? await filesBelow(nested, { ending, roots, onNotice }) : []),
      ...(await filesBelow(directory, { ending, roots, onNotice, depth: 0 })),
    ];
    for (const path of found) await gathering.addFile(given(path));
  }
}

/** Returns real paths without duplicates. */
function directoriesIn(
  { environment, instructionDirectories = [], context }: InstructionRequest,
  onNotice: (notice: string) => void,
): string[] {
  const lists = [environment.TROUPE_INSTRUCTION_DIRS, environment.COPILOT_CUSTOM_INSTRUCTIONS_DIRS];
  const named = lists.flatMap((list) => (list ?? "").split(new RegExp(`[,${delimiter}]`)).map((name) => name.trim()));
  const wanted = [...new Set([...named, ...instructionDirectories].filter(Boolean))];
  if (wanted.length > MAX_DIRECTORIES) onNotice(`Only the first ${MAX_DIRECTORIES} instruction folders are used.`);
  const real = wanted.slice(0, MAX_DIRECTORIES).flatMap((directory) => {
    try {
      return [realpathSync(resolve(context.cwd, directory))];
    } catch {
      onNotice(`The instruction folder ${directory} does not exist or cannot be read.`);
      return [];
    }
  });
  return [...new Set(real)];
}

async function gatherProjects(gathering: InstructionCollector, levels: readonly string[]): Promise<void> {
  const { root, onNotice } = gathering.context;
  const roots = [root];
  for (const level of levels) {
    const scope = level === root ? "repository" : "working-directory";
    const found = (path: string): InstructionCandidate => ({ path, scope, roots, importRoot: root });
    const { files, rules } = await filesOf(level, { roots, onNotice });
    for (const path of files) await gathering.addFile(found(path));
    for (const path of rules) await gathering.addRule(found(path), level);
  }
}

function sectionOf(
  texts: readonly InstructionText[],
  rules: readonly ScopedRule[],
  onNotice: (notice: string) => void,
): { text: string; told: InstructionText[] } {
  if (texts.length === 0 && rules.length === 0) return { text: "", told: [] };
  const openings = namedTexts(source);
  const references = referencesWithin(rules, onNotice);
  const frame = [openings.get("person"), openings.get("project"), openings.get("references"), references].join("\n\n");
  let bytesLeft = MAX_INSTRUCTION_BYTES - byteLength(wrapInTag("custom_instructions", {}, frame)) - 16;
  const told: InstructionText[] = [];
  const blocks = new Map<"person" | "project", string[]>([
    ["person", []],
    ["project", []],
  ]);
  for (const text of texts) {
    const block = blockOf(text, { tag: "instruction_file", maxBytes: bytesLeft - 2 });
    if (block.isCut)
      onNotice(
        `${text.shownPath} was ${block.text ? "cut" : "left out"}: instructions have at most ${MAX_INSTRUCTION_BYTES / 1024} KiB.`,
      );
    if (block.text === undefined) continue;
    bytesLeft -= byteLength(block.text) + 2;
    told.push(text);
    blocks.get(text.scope === "user" || text.scope === "directory" ? "person" : "project")?.push(block.text);
  }
  const parts = [...blocks].flatMap(([name, own]) => (own.length > 0 ? [openings.get(name), ...own] : []));
  const tail = references === "" ? [] : [openings.get("references"), references];
  return { text: wrapInTag("custom_instructions", {}, [...parts, ...tail].join("\n\n")), told };
}

function referencesWithin(rules: readonly ScopedRule[], onNotice: (notice: string) => void): string {
  let text = "";
  for (const [index, rule] of rules.entries()) {
    const longer = text === "" ? referenceLine(rule) : `${text}\n${referenceLine(rule)}`;
    if (byteLength(longer) > MAX_REFERENCE_BYTES) {
      onNotice(`${plural(rules.length - index, "rule")} for certain files could not be listed.`);
      return text;
    }
    text = longer;
  }
  return text;
}
