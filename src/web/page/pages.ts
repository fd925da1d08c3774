/**
 * The pages that the bar at the top leads to, with their keys. A further page is an entry here, and its view in `app.tsx`.
 * One that needs a database is offered only if there is one.
 */
export const pages = [
  { view: "sessions", name: "Sessions", key: "g", text: "all sessions" },
  { view: "attention", name: "Attention", key: "a", text: "everything that waits for you" },
  { view: "memory", name: "Memory", key: "m", text: "memory and board of this folder" },
  { view: "workers", name: "Workers", key: "w", text: "workers of the database", needsDatabase: true },
] as const satisfies readonly Page[];

interface Page {
  readonly view: string;
  readonly name: string;
  readonly key: string;
  readonly text: string;
  readonly needsDatabase?: true;
}

export const needsDatabase = (page: Page): boolean => page.needsDatabase === true;

export type PageName = (typeof pages)[number]["view"];
