/** Delegates parts of a repository to agents: chooses the parts and writes their prompts. */
import { isObject } from "../../lib/json.ts";
import template from "./explore-part.md";
import { answerTo, type PlannedCall, type Scene } from "./plan/plan.ts";
import { type Folder, isAside } from "./project/folders.ts";

export interface PromptPart {
  readonly folder: string;
  readonly call: PlannedCall;
}

const AGENT = "explore";
const MAX_PARTS = 6;
/** With fewer parts of some size, exploring without agents is as fast. */
const MIN_PARTS = 2;
const SUBSTANTIAL_FILES = 5;
const MIN_FILES = 3;
/** Matches paths that need no escaping in a sentence, a glob and an id. */
const PLAIN_PATH = /^(?!.*(?:^|\/)\.\.?(?:\/|$))[\p{L}\p{N}_.@+-][\p{L}\p{N}_.@+/-]{0,150}$/u;
const [BEFORE = "", AFTER = ""] = (template.split("\n", 1)[0] ?? "").split("{{folder}}");

/** Returns the largest parts, code first. Returns none if agents are unavailable or not worthwhile. */
export function partsOf(scene: Scene, folders: readonly Folder[]): PromptPart[] {
  if (!offersExplorers(scene)) return [];
  const leaves = folders.filter(({ path, files, opened }) => !opened && files >= MIN_FILES && PLAIN_PATH.test(path));
  if (leaves.filter(({ files }) => files >= SUBSTANTIAL_FILES).length < MIN_PARTS) return [];
  return leaves
    .sort((a, b) => asideLast(a, b) || b.files - a.files || (a.path < b.path ? -1 : 1))
    .slice(0, MAX_PARTS)
    .map(({ path }) => ({ folder: path, call: explore(path) }))
    .sort((a, b) => (a.folder < b.folder ? -1 : 1));
}

/** True while the part's agent may be called and has neither answered nor failed. */
export function isOpen(scene: Scene, part: PromptPart): boolean {
  return scene.turnsLeft > 0 && answerTo(scene, part.call) === undefined;
}

/** Returns the folder that one of our delegation prompts names. */
export function partAskedFor(prompt: string): string | undefined {
  if (!prompt.startsWith(BEFORE)) return undefined;
  const end = prompt.indexOf(AFTER, BEFORE.length);
  const folder = prompt.slice(BEFORE.length, Math.max(end, BEFORE.length));
  return PLAIN_PATH.test(folder) ? folder : undefined;
}

function offersExplorers({ tools }: Scene): boolean {
  const parameters = tools.get("task")?.parameters;
  const properties = parameters !== undefined && "properties" in parameters ? parameters.properties : undefined;
  const type = isObject(properties) ? properties.agent_type : undefined;
  return isObject(type) && Array.isArray(type.enum) && type.enum.includes(AGENT);
}

function explore(folder: string): PlannedCall {
  return {
    name: "task",
    arguments: {
      description: `Explore ${folder}`,
      prompt: template.trim().replaceAll("{{folder}}", () => folder),
      agent_type: AGENT,
      name: `${AGENT}-${folder.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-")}`,
      mode: "sync",
    },
  };
}

function asideLast(a: Folder, b: Folder): number {
  return Number(isAside(a.path)) - Number(isAside(b.path));
}
