import type { ContentBlock, ToolCallContent } from "@agentclientprotocol/sdk";

export const textBlock = (text: string): ContentBlock => ({ type: "text", text });

export const textContent = (text: string): ToolCallContent => ({ type: "content", content: textBlock(text) });

/**
 * Output of tools as an editor shows it. Editors render text as Markdown: in a fence that the output cannot close, it links
 * to nothing and loads nothing.
 */
export function fencedContent(output: string): ToolCallContent {
  const longest = Math.max(2, ...(output.match(/`+/g) ?? []).map(({ length }) => length));
  const fence = "`".repeat(longest + 1);
  return textContent(`${fence}\n${output.endsWith("\n") ? output : `${output}\n`}${fence}`);
}
