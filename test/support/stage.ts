import * as z from "zod";
import { fauxModel } from "../../src/model/faux/faux-model.ts";
import type { Step } from "../../src/model/faux/faux-plan.ts";
import type { Provider } from "../../src/model/provider.ts";
import type { EventData, EventType, SessionEvent } from "../../src/protocol/event.ts";
import { policyOf } from "../../src/runtime/permissions/policy.ts";
import { Session, type SessionOptions } from "../../src/session/session.ts";
import type { Store } from "../../src/store/store.ts";
import { fauxStamp } from "../../src/testing/faux-stamp.ts";
import { defineTool, type Tool } from "../../src/tools/tool.ts";
import { ToolError } from "../../src/tools/tool-error.ts";
import { memoryGrants } from "./memory-grants.ts";
import { memoryStore } from "./memory-store.ts";

export interface Stage {
  readonly session: Session;
  readonly model: ReturnType<typeof fauxModel>;
  /** Everything the session said, ephemeral events included, in order. */
  readonly heard: SessionEvent[];
  readonly store: Store;
}

type More = Partial<Omit<SessionOptions, "model" | "log"> & SessionOptions["promptAndTools"]> & {
  store?: Store;
  provider?: Provider;
  resume?: string;
};

/** A session on a scripted model, with everything else real. */
export async function stage(steps: readonly Step[], more: More = {}): Promise<Stage> {
  const model = fauxModel(...steps);
  const {
    store = memoryStore(),
    provider = model,
    resume,
    system = "You are on stage.",
    tools = [echo],
    ...rest
  } = more;
  const options: SessionOptions = {
    log: await (resume ? store.open(resume) : store.create("session-1")),
    stamp: fauxStamp(),
    version: "0.0.0",
    model: { provider, providerId: "faux", model: "faux-1", costOf: () => 0 },
    promptAndTools: { system, tools },
    cwd: "/stage",
    roots: ["/stage"],
    context: { cwd: "/stage" },
    policy: policyOf({ allTools: true }, { roots: rest.roots ?? ["/stage"], stateRoot: "/nowhere", writable: [] }),
    ports: {},
    grants: memoryGrants(),
    ...rest,
  };
  const session = await (resume ? Session.resume(options) : Session.create(options));
  const heard: SessionEvent[] = [];
  session.subscribe((event) => heard.push(event));
  return { session, model, heard, store };
}

/** Says back what it is given. */
export const echo: Tool = defineTool({
  name: "echo",
  description: "Says it back.",
  readOnly: true,
  input: z.object({ text: z.string() }),
  run: async ({ text }) => ({ content: text }),
});

/** A tool for one test. */
export function tool(
  name: string,
  run: (signal: AbortSignal) => Promise<string>,
  more: Partial<Pick<Tool, "endsAnswer" | "exclusive" | "readOnly" | "timeoutMs">> = {},
): Tool {
  return defineTool({
    name,
    description: name,
    input: z.object({}),
    ...more,
    run: async (_, { signal }) => ({ content: await run(signal) }),
  });
}

export const refuse = (message: string): never => {
  throw new ToolError(message);
};

/** The data of all events of one type. */
export function dataOf<T extends EventType>(events: readonly SessionEvent[], type: T): EventData<T>[] {
  return events
    .filter((event): event is Extract<SessionEvent, { type: T }> => event.type === type)
    .map(({ data }) => data as EventData<T>);
}
