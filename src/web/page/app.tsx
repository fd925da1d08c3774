/** The frame of the page: navigation, the chosen view, and short messages. */
import type { JSX } from "preact";
import { Help, isHelpOpen } from "./keys.tsx";
import { needsDatabase, type PageName, pages } from "./pages.ts";
import { addressOf, type Route, route } from "./route.ts";
import { link } from "./server.ts";
import { attention, boot, rows, toast } from "./state.ts";
import { AttentionView } from "./views/attention.tsx";
import { LazyPage } from "./views/lazy.tsx";
import { SessionPage } from "./views/session.tsx";
import { SessionsView } from "./views/sessions.tsx";

export function App(): JSX.Element {
  const at = route.value;
  return (
    <>
      <header class="bar">
        <a class="brand" href="#/">
          troupe
        </a>
        <nav aria-label="Main">
          {pages.filter(isOffered).map(({ view, name }) => (
            <NavLink key={view} to={{ view }} at={at} isUrgent={view === "attention" && attention.value.length > 0}>
              {`${name} ${counts[view]?.() ?? ""}`.trimEnd()}
            </NavLink>
          ))}
        </nav>
        <LinkState />
        <button type="button" class="quiet" aria-label="Keys" onClick={() => (isHelpOpen.value = true)}>
          ?
        </button>
      </header>
      <View at={at} />
      <div class="toast" role="status" aria-live="polite">
        {link.value === "refused" && rows.value.size > 0 && (
          <p class="error">Logged out: troupe web was started again. Open the address that it prints now.</p>
        )}
        {toast.value && <p class={toast.value.isError ? "error" : ""}>{toast.value.text}</p>}
      </div>
      <Help />
    </>
  );
}

/** A page that needs a database waits until the server has said whether there is one. */
const isOffered = (page: (typeof pages)[number]): boolean => !needsDatabase(page) || boot.value?.database !== undefined;

const views: Readonly<Record<PageName, () => JSX.Element>> = {
  sessions: SessionsView,
  attention: AttentionView,
  memory: () => <LazyPage key="memory" load={async () => (await import("./views/memory.tsx")).MemoryPage} />,
  workers: () => <LazyPage key="workers" load={async () => (await import("./views/workers.tsx")).WorkersPage} />,
};

/** Numbers beside the names in the bar. */
const counts: Readonly<Partial<Record<PageName, () => number>>> = {
  sessions: () => rows.value.size,
  attention: () => attention.value.length,
};

function View({ at }: { readonly at: Route }): JSX.Element {
  if (link.value === "refused" && rows.value.size === 0) return <Refused />;
  switch (at.view) {
    case "session":
      return <SessionPage route={at} />;
    case "compare": {
      const { ids } = at;
      return (
        <LazyPage
          key={ids.join(" ")}
          load={async () => {
            const { ComparePage } = await import("./views/compare.tsx");
            return () => <ComparePage ids={ids} />;
          }}
        />
      );
    }
    default: {
      const Page = pages.some((page) => page.view === at.view && isOffered(page)) ? views[at.view] : SessionsView;
      return <Page />;
    }
  }
}

interface NavProps {
  readonly to: Route;
  readonly at: Route;
  readonly isUrgent?: boolean;
  readonly children: string;
}

function NavLink({ to, at, isUrgent = false, children }: NavProps): JSX.Element {
  return (
    <a href={addressOf(to)} class={isUrgent ? "urgent" : ""} aria-current={to.view === at.view ? "page" : undefined}>
      {children}
    </a>
  );
}

function LinkState(): JSX.Element {
  const words = {
    connecting: "connecting",
    open: "connected",
    lost: "reconnecting",
    refused: "not connected",
  } as const;
  return (
    <span
      class={`link-state ${link.value}`}
      title={boot.value ? `troupe ${boot.value.version}, ${boot.value.home}` : ""}
    >
      {words[link.value]}
    </span>
  );
}

function Refused(): JSX.Element {
  return (
    <main class="page">
      <h1>This page needs a new address</h1>
      <p>
        Open the address that <code>troupe web</code> prints. It works once; press Enter there for another one. A tab
        that is logged in lets this one in too.
      </p>
    </main>
  );
}
