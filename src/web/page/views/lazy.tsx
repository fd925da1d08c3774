/** Views that are loaded when they are opened. */
import type { ComponentChildren, ComponentType, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Tab } from "../route.ts";
import type { PageSession } from "../session-model.ts";

export interface TabProps {
  readonly model: PageSession;
  readonly agent: string;
}

const loaders: Readonly<Record<Exclude<Tab, "run">, () => Promise<ComponentType<TabProps>>>> = {
  changes: async () => (await import("./changes.tsx")).ChangesTab,
  cost: async () => (await import("./cost.tsx")).CostTab,
  memory: async () => (await import("./memory.tsx")).MemoryTab,
};

export function Lazy({ tab, ...props }: TabProps & { readonly tab: Exclude<Tab, "run"> }): JSX.Element {
  const [loaded, setLoaded] = useState<{ readonly tab: Tab; readonly view: ComponentType<TabProps> } | undefined>();
  useEffect(() => {
    let isGone = false;
    void loaders[tab]().then((view) => {
      if (!isGone) setLoaded({ tab, view });
    });
    return () => {
      isGone = true;
    };
  }, [tab]);
  if (loaded?.tab !== tab) return <p class="hint">Loading…</p>;
  const View = loaded.view;
  return <View {...props} />;
}

/** A page that is loaded when it is opened. */
export function LazyPage({ load }: { load(): Promise<ComponentType> }): JSX.Element {
  const [loaded, setLoaded] = useState<{ readonly view: ComponentType } | undefined>();
  useEffect(() => {
    let isGone = false;
    void load().then((view) => {
      if (!isGone) setLoaded({ view });
    });
    return () => {
      isGone = true;
    };
  }, []);
  if (!loaded) {
    return (
      <main class="page">
        <p class="hint">Loading…</p>
      </main>
    );
  }
  const View = loaded.view;
  return <View />;
}

/** The part of a tab that scrolls. */
export function TabBody({
  label,
  children,
}: {
  readonly label: string;
  readonly children: ComponentChildren;
}): JSX.Element {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
    <section class="tab" aria-label={label} tabIndex={0}>
      {children}
    </section>
  );
}
