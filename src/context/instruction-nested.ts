/** Finds instructions while the agent works: those of folders it enters, and rules for files it touches. */

import { relative, sep } from "node:path";
import { defined } from "../lib/defined.ts";
import { isInside } from "../lib/node/paths.ts";
import { blockOf, byteLength } from "./instruction-block.ts";
import { filesOf, folderOf, levelsBetween } from "./instruction-files.ts";
import type { InstructionCandidate, InstructionReader, InstructionText } from "./instruction-reader.ts";
import { type ScopedRule, scopedRule } from "./instruction-rules.ts";
import source from "./instructions.md";
import { namedTexts } from "./named-texts.ts";

export interface DiscoveredInstruction {
  readonly path: string;
  /** The globs of a matching rule. */
  readonly glob?: string;
  /** Wrapped and bounded, ready for the model. */
  readonly text: string;
}

export interface NestedOptions {
  readonly reader: InstructionReader;
  /** The git root, or the working directory without one. Nothing outside of it is discovered. */
  readonly root: string;
  /** Folders whose files were already read at the start. */
  readonly known: readonly string[];
  readonly rules: readonly ScopedRule[];
  readonly onNotice: (notice: string) => void;
}

const MAX_BYTES = 64 * 1024;
const MAX_DISCOVERED = 50;
const MAX_FOLDERS = 5_000;
const MAX_RULES = 500;
/** Folders that contain no files of the project's own. */
const FOREIGN_FOLDERS = new Set(["node_modules", ".git"]);

/** Finds instructions for one session. Each is returned once. */
export class NestedInstructions {
  readonly #options: NestedOptions;
  readonly #folders: Set<string>;
  #rules: readonly ScopedRule[];
  #bytesLeft = MAX_BYTES;
  #filesLeft = MAX_DISCOVERED;

  constructor(options: NestedOptions) {
    this.#options = options;
    this.#folders = new Set(options.known);
    this.#rules = options.rules;
  }

  /** Returns the instructions that are new now that a tool touches this file or folder. Calls may overlap. */
  async onFileAccess(absolutePath: string): Promise<DiscoveredInstruction[]> {
    const { root } = this.#options;
    const isForeign = relative(root, absolutePath)
      .split(sep)
      .some((name) => FOREIGN_FOLDERS.has(name));
    if (isForeign || !isInside(absolutePath, [root])) return [];
    const discovered: DiscoveredInstruction[] = [];
    for (const folder of levelsBetween(root, folderOf(absolutePath))) discovered.push(...(await this.#enter(folder)));
    const matching = this.#rules.filter((rule) => rule.matches(absolutePath));
    this.#rules = this.#rules.filter((rule) => !matching.includes(rule));
    for (const rule of matching) discovered.push(...(await this.#tell(rule.found, rule.globs.join(", "))));
    return discovered;
  }

  async #enter(folder: string): Promise<DiscoveredInstruction[]> {
    if (this.#folders.has(folder) || this.#folders.size >= MAX_FOLDERS) return [];
    this.#folders.add(folder);
    const { root, reader, onNotice } = this.#options;
    const { files, rules } = await filesOf(folder, { roots: [root], onNotice });
    const foundAt = (path: string): InstructionCandidate => ({
      path,
      scope: "working-directory",
      roots: [root],
      importRoot: root,
    });
    const discovered: DiscoveredInstruction[] = [];
    for (const path of files) discovered.push(...(await this.#tell(foundAt(path))));
    for (const path of rules) {
      const text = await reader.read(foundAt(path));
      const rule = text && scopedRule(text, folder, onNotice);
      if (rule === undefined) discovered.push(...(await this.#tell(foundAt(path))));
      else if (this.#rules.length < MAX_RULES) this.#rules = [...this.#rules, rule];
    }
    return discovered;
  }

  async #tell(found: InstructionCandidate, glob?: string): Promise<DiscoveredInstruction[]> {
    const { reader } = this.#options;
    const text = await reader.read(found);
    if (text === undefined || !reader.claim(text)) return [];
    const all = await reader.withImports(text);
    return all.flatMap((each) => this.#block(each, glob));
  }

  #block(instruction: InstructionText, glob: string | undefined): DiscoveredInstruction[] {
    const { onNotice } = this.#options;
    const { text, isCut } = blockOf(instruction, {
      tag: "instruction_discovered",
      opening: namedTexts(source).get(instruction.scope === "user" ? "person" : "discovered") ?? "",
      maxBytes: this.#filesLeft > 0 ? this.#bytesLeft : 0,
      ...defined({ glob }),
    });
    if (isCut) onNotice(`${instruction.shownPath} was ${text ? "cut" : "left out"}: enough was discovered already.`);
    if (text === undefined) return [];
    this.#bytesLeft -= byteLength(text);
    this.#filesLeft--;
    return [{ path: instruction.path, text, ...defined({ glob }) }];
  }
}
