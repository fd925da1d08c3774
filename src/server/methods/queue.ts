/** What waits until the agent is done: messages, then commands. */
import { type MethodTable, nothing, sessionMethod } from "./method.ts";

export const queueMethods: MethodTable = {
  "session.queue.pendingItems": sessionMethod(nothing, (_, { live, session }) => {
    const { queued, steering } = session.queue.waiting;
    const agentMode = session.modes.current;
    return {
      items: [
        ...queued.map((message) => ({
          id: message.messageId,
          kind: "message",
          displayText: message.displayPrompt ?? message.content,
          agentMode: message.agentMode ?? agentMode,
        })),
        ...live.commands.queued.map(({ id, command }) => ({ id, kind: "command", displayText: command, agentMode })),
      ],
      steeringMessages: steering.map(({ displayPrompt, content }) => displayPrompt ?? content),
    };
  }),
  "session.queue.removeMostRecent": sessionMethod(nothing, async (_, { live, session }) => {
    const command = live.commands.queued.at(-1);
    if (command) return { removed: live.commands.withdraw(command.id) };
    const message = session.queue.waiting.queued.at(-1);
    return { removed: message !== undefined && (await session.queue.withdraw(message.messageId)) };
  }),
  "session.queue.clear": sessionMethod(nothing, async (_, { live, session }) => {
    for (const { id } of [...live.commands.queued]) live.commands.withdraw(id);
    for (const { messageId } of session.queue.waiting.queued) await session.queue.withdraw(messageId);
  }),
};
