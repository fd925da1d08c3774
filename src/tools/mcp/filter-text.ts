/** Filters text of a server before a model reads it. */
import { sanitise } from "../../lib/text.ts";
import type { McpFilterMapping, McpServerConfig } from "./server.ts";

const HTML_COMMENT = /<!--[\s\S]*?(?:-->|$)/g;
/** Rendering an image sends its address, and any data in it, to the host of the image. */
const MARKDOWN_IMAGE = /!\[([^\]\n]{0,500})\]\([^)\n]{0,4096}\)/g;
const HTML_TAG = /<(img|iframe|script|style|object|embed|link|meta)\b[^>]{0,4096}>/gi;

/** A project may choose a stricter filter, never a weaker one. */
export function filterFor({ filterMapping = "hidden_characters", scope }: McpServerConfig): McpFilterMapping {
  const mayTurnOff = scope !== "project" && scope !== "plugin";
  return filterMapping === "none" && !mayTurnOff ? "hidden_characters" : filterMapping;
}

export function filterText(text: string, filter: McpFilterMapping): string {
  if (filter === "none") return text;
  const visible = sanitise(text);
  if (filter === "hidden_characters") return visible;
  return visible.replace(HTML_COMMENT, "").replace(HTML_TAG, "").replace(MARKDOWN_IMAGE, "[image: $1]");
}
