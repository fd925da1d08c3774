import type { ContentBlock, ToolCallContent } from "@agentclientprotocol/sdk";
import { fenced } from "../lib/text.ts";

export const textBlock = (text: string): ContentBlock => ({ type: "text", text });

export const textContent = (text: string): ToolCallContent => ({ type: "content", content: textBlock(text) });

/**
 * Output of tools as an editor shows it. Editors render text as Markdown: in a fence that the output cannot close, it links
 * to nothing and loads nothing.
 */
export const fencedContent = (output: string): ToolCallContent => textContent(fenced(output));
