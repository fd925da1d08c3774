/** The shown view, as the part of the address behind `#`. Nothing of it reaches the server. */
import { signal } from "@preact/signals";
import { type PageName, pages } from "./pages.ts";

export type Tab = "run" | "changes" | "cost" | "memory";

export type Route =
  | { readonly view: PageName }
  | { readonly view: "compare"; readonly ids: readonly string[] }
  | {
      readonly view: "session";
      readonly id: string;
      readonly tab: Tab;
      /** The selected agent; empty for the main agent. */
      readonly agent: string;
    };

const tabs: ReadonlySet<string> = new Set(["run", "changes", "cost", "memory"]);

function parseRoute(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?");
  const [view = "", id = "", tab = ""] = path.split("/").map((part) => decodePart(part));
  const params = new URLSearchParams(query);
  const page = pages.find((one) => one.view === view);
  if (page) return { view: page.view };
  if (view === "compare") return { view, ids: (params.get("ids") ?? "").split(",").filter(Boolean) };
  if (view !== "s" || id === "") return { view: "sessions" };
  return { view: "session", id, tab: tabs.has(tab) ? (tab as Tab) : "run", agent: params.get("agent") ?? "" };
}

export function addressOf(route: Route): string {
  switch (route.view) {
    case "sessions":
      return "#/";
    case "compare":
      return `#/compare?ids=${route.ids.map(encodeURIComponent).join(",")}`;
    case "session": {
      const tab = route.tab === "run" ? "" : `/${route.tab}`;
      const query = route.agent === "" ? "" : `?agent=${encodeURIComponent(route.agent)}`;
      return `#/s/${encodeURIComponent(route.id)}${tab}${query}`;
    }
    default:
      return `#/${route.view}`;
  }
}

export const route = signal<Route>(parseRoute(location.hash));

addEventListener("hashchange", () => {
  route.value = parseRoute(location.hash);
});

export function go(to: Route): void {
  location.hash = addressOf(to);
}

function decodePart(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return "";
  }
}
