/** Commits blocks of the transcript to the main screen. */
import type { BinaryReference } from "../../protocol/event.ts";
import type { Block } from "../../view/blocks.ts";
import type { AgentView } from "../../view/view.ts";
import type { Host } from "../host.ts";
import { blockLines } from "./block-lines.ts";
import { fileLine, isShowable, resultImage } from "./result-files.ts";

type Page = Pick<Host, "options" | "style" | "session" | "screen" | "commit" | "call">;

/** Images are shown while a session is followed. Of an earlier conversation they are only named. */
export function commitBlocks(page: Page, blocks: readonly Block[], { isLive }: { readonly isLive: boolean }): void {
  const { style, session, options } = page;
  const isShown = (file: BinaryReference): boolean => isLive && isShowable(file, options.environment);
  const agent = (id: string): AgentView | undefined => session?.view.agents.get(id);
  for (const block of blocks) {
    const lines = blockLines(block, { style, folder: session?.folder, isShown, agent });
    // Output, code and tables are committed as they are; prose is wrapped between words.
    if (isExact(block)) page.screen.commit(lines);
    else page.commit(lines);
    if (block.kind === "tool") for (const file of block.card.images.filter(isShown)) void showFile(page, file);
  }
}

function isExact(block: Block): boolean {
  if (block.kind === "tool") return block.card.name !== "exit_plan_mode";
  if (block.kind !== "assistant") return false;
  return block.markdown.kind === "code" || block.markdown.kind === "table";
}

async function showFile(page: Page, file: BinaryReference): Promise<void> {
  const image = await resultImage(page, file);
  page.screen.commit([image ?? page.style.dim(`  ${fileLine(file, page.session?.folder)}`)]);
}
