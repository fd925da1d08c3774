import type { ContentBlock, ToolCallContent } from "@agentclientprotocol/sdk";
import { fenceText } from "../lib/text.ts";

export const textBlock = (text: string): ContentBlock => ({ type: "text", text });

export const textContent = (text: string): ToolCallContent => ({ type: "content", content: textBlock(text) });

/**
 * Tool output as an editor shows it. Editors render text as Markdown. A fence that the output cannot close disables
 * links and embedded content.
 */
export const fencedContent = (output: string): ToolCallContent => textContent(fenceText(output));
