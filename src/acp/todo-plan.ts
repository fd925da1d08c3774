import type { PlanEntry } from "@agentclientprotocol/sdk";

const ITEM = /^[ \t]*(?:[-*+]|\d{1,4}[.)])[ \t]+\[([ xX~/>-])\][ \t]*(.*)$/gm;

/** Converts the list of `update_todo`, Markdown with check boxes, to a plan. */
export function planOfList(markdown: string): PlanEntry[] {
  return [...markdown.matchAll(ITEM)].map(([, mark = " ", content = ""]) => {
    const status = mark === " " ? "pending" : mark.toLowerCase() === "x" ? "completed" : "in_progress";
    return { content, status, priority: "medium" };
  });
}

const STATUS: Readonly<Record<string, PlanEntry["status"]>> = { done: "completed", in_progress: "in_progress" };

/** Converts the rows of the table `todos` to a plan. */
export function planOfRows(rows: readonly { readonly title?: string; readonly status?: string }[]): PlanEntry[] {
  return rows.map(({ title = "", status = "" }) => {
    return { content: title, status: STATUS[status] ?? "pending", priority: "medium" };
  });
}
