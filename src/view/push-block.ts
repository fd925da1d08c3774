/** Adds blocks to transcripts, and bounds what they take. */
import type { Block } from "./blocks.ts";
import { type AgentDraft, type FoldStep, isBusy, type ViewDraft } from "./draft.ts";

/** Bounds for the main agent, in case nobody drains its blocks. */
const MAIN_BLOCKS = 2_000;
const MAIN_CHARACTERS = 1_500_000;
/** Bounds for each other agent, and for all of them. */
const AGENT_BLOCKS = 300;
const AGENT_CHARACTERS = 200_000;
const ALL_CHARACTERS = 1_500_000;

type Fields<B> = B extends Block ? Omit<B, "id" | "agentId" | "at" | "eventId"> : never;

/** Appends a block for the step's event. */
export function pushBlock(
  step: FoldStep,
  fields: Fields<Block>,
  more: { readonly agent?: AgentDraft; id?: string } = {},
): void {
  const agent = more.agent ?? step.agent;
  if (agent) pushBlocks(step, agent, [placeBlock(step, agent, fields, more.id)]);
}

export function placeBlock(step: FoldStep, agent: AgentDraft, fields: Fields<Block>, id?: string): Block {
  const { event, at } = step;
  const isStored = event.ephemeral !== true;
  const where = { id: id ?? event.id, agentId: agent.id === "" ? undefined : agent.id, at };
  return Object.freeze({ ...where, eventId: isStored ? event.id : undefined, ...fields }) as Block;
}

export function pushBlocks({ view }: Pick<FoldStep, "view">, agent: AgentDraft, blocks: readonly Block[]): void {
  for (const block of blocks) {
    agent.blocks.push(block);
    resize(view, agent, sizeOf(block));
  }
  const isMain = agent === view.main;
  const [most, characters] = isMain ? [MAIN_BLOCKS, MAIN_CHARACTERS] : [AGENT_BLOCKS, AGENT_CHARACTERS];
  if (agent.blocks.length > most || agent.size > characters) trim(view, agent, { most, characters });
  if (view.size > ALL_CHARACTERS) dropOldest(view);
}

/** Takes all blocks out. */
export function takeBlocks(view: ViewDraft, agent: AgentDraft): Block[] {
  const { blocks } = agent;
  agent.blocks = [];
  resize(view, agent, -agent.size);
  return blocks;
}

function resize(view: ViewDraft, agent: AgentDraft, characters: number): void {
  agent.size += characters;
  if (agent !== view.main) view.size += characters;
}

/** Removes the oldest blocks, a quarter at once, so that the cost for each event stays constant. The newest stays. */
function trim(view: ViewDraft, agent: AgentDraft, room: { most: number; characters: number }): void {
  let count = Math.max(0, agent.blocks.length - Math.floor(room.most * 0.75));
  let size = agent.size;
  for (const block of agent.blocks.slice(0, count)) size -= sizeOf(block);
  while (size > room.characters * 0.75 && count < agent.blocks.length - 1) {
    const block = agent.blocks[count];
    if (block) size -= sizeOf(block);
    count++;
  }
  agent.blocks.splice(0, count);
  agent.droppedBlocks += count;
  resize(view, agent, size - agent.size);
}

/** Forgets the transcripts of agents that ended first, then of the others. */
function dropOldest(view: ViewDraft): void {
  const agents = [...view.agents.values()];
  for (const agent of [...agents.filter((one) => !isBusy(one)), ...agents.filter(isBusy)]) {
    if (view.size <= ALL_CHARACTERS * 0.75) return;
    agent.droppedBlocks += agent.blocks.length;
    takeBlocks(view, agent);
  }
}

/** About how many characters a block holds. */
function sizeOf(block: Block): number {
  switch (block.kind) {
    case "user":
    case "reasoning":
    case "notice":
    case "error":
      return OVERHEAD + block.text.length;
    case "assistant":
      return OVERHEAD + block.markdown.text.length;
    case "tool": {
      const { arguments: given, output, diff, error = "" } = block.card;
      const shown = output.head.length + output.tail.length + (diff?.head.length ?? 0);
      return OVERHEAD + given.length + shown + error.length;
    }
    case "plan":
      return block.items.reduce((sum, { title }) => sum + title.length, OVERHEAD);
    case "compaction":
    case "completion":
      return OVERHEAD + block.summary.length;
    case "agent":
      return OVERHEAD + block.result.length;
    case "answer":
      return OVERHEAD + block.question.length + (block.answer?.length ?? 0);
    default:
      return OVERHEAD;
  }
}

const OVERHEAD = 200;
