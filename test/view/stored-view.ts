import type { AgentView, View } from "../../src/view/view.ts";

/** The part of a view that follows from stored events alone: what every watcher knows at the same sequence number. */
export function storedView(view: View): unknown {
  const { revision: _, servers: __, session, main, agents, attention, plan, ...rest } = view;
  const { isIdle: ___, isMainIdle: ____, ...facts } = session;
  return {
    ...rest,
    session: facts,
    main: storedAgent(main),
    agents: [...agents.values()].map(storedAgent),
    attention: [...attention.values()]
      .filter(({ isLive }) => !isLive)
      .map(({ id, kind, title, path, agentId }) => {
        return { id, kind, title, path, agentId };
      }),
    plan: { ...plan, tableChanges: 0 },
  };
}

function storedAgent(agent: AgentView): unknown {
  const { streaming: _, modelWait: __, context: ___, lastAt: ____, tools, ...rest } = agent;
  return {
    ...rest,
    tools: [...tools.values()].map(({ output: _, progress: __, waitsFor: ___, ...card }) => card),
  };
}
