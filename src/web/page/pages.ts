/**
 * The pages that the bar at the top leads to, with their keys. A further page is an entry here, and its view in `app.tsx`.
 */
export const pages = [
  { view: "sessions", name: "Sessions", key: "g", text: "all sessions" },
  { view: "attention", name: "Attention", key: "a", text: "everything that waits for you" },
  { view: "memory", name: "Memory", key: "m", text: "memory and board of this folder" },
] as const;

export type PageName = (typeof pages)[number]["view"];
