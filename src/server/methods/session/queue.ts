/** The queue of a session: messages, then commands, that wait until the agent is idle. */

import * as z from "zod";
import { defined } from "../../../lib/defined.ts";
import { GivenAttachment } from "../../../protocol/define-event.ts";
import { type MethodTable, nothing, sessionMethod } from "../method.ts";

const byId = () => ({ id: z.string().min(1) });
const byMessage = () => ({ messageId: z.string().min(1), expectedPrompt: z.string() });
const Message = () =>
  z.object({
    prompt: z.string(),
    displayPrompt: z.string().exactOptional(),
    attachments: z.array(GivenAttachment).exactOptional(),
    agentMode: z.enum(["interactive", "plan", "autopilot", "shell"]).exactOptional(),
    source: z.string().max(200).exactOptional(),
    requestHeaders: z.record(z.string(), z.string()).exactOptional(),
  });

export const queueMethods: MethodTable = {
  "session.queue.pendingItems": sessionMethod(nothing, (_, { hosted, session }) => {
    const { queued, steering } = session.queue.waiting;
    const agentMode = session.mainAgent.modes.current;
    return {
      items: [
        ...queued.map((message) => ({
          id: message.messageId,
          kind: "message",
          displayText: message.displayPrompt ?? message.content,
          agentMode: message.agentMode ?? agentMode,
        })),
        ...hosted.commands.queued.map(({ id, command }) => ({ id, kind: "command", displayText: command, agentMode })),
      ],
      steeringMessages: steering.map(({ displayPrompt, content }) => displayPrompt ?? content),
    };
  }),
  "session.queue.removeMostRecent": sessionMethod(nothing, async (_, { hosted, session }) => {
    const command = hosted.commands.queued.at(-1);
    if (command) return { removed: hosted.commands.withdraw(command.id) };
    const message = session.queue.waiting.queued.at(-1);
    return { removed: message !== undefined && (await session.queue.withdraw(message.messageId)) };
  }),
  "session.queue.clear": sessionMethod(nothing, async (_, { hosted, session }) => {
    for (const { id } of [...hosted.commands.queued]) hosted.commands.withdraw(id);
    for (const { messageId } of session.queue.waiting.queued) await session.queue.withdraw(messageId);
  }),
  "session.queue.moveItem": sessionMethod(
    () => ({ ...byId(), toPosition: z.number() }),
    ({ id, toPosition }, { session }) => ({ changed: session.queue.editor.move(id, toPosition) }),
  ),
  "session.queue.insertAt": sessionMethod(
    () => ({ position: z.number(), message: Message() }),
    async ({ position, message }, { session }) => {
      const { requestHeaders: headers, ...given } = message;
      const send = { ...given, ...(headers && { answering: { headers } }) };
      return { id: await session.queue.editor.insert(send, position) };
    },
  ),
  "session.queue.removeAt": sessionMethod(byId, async ({ id }, { hosted, session }) => ({
    removed: hosted.commands.withdraw(id) || (await session.queue.withdraw(id)),
  })),
  "session.queue.updateText": sessionMethod(
    () => ({ ...byId(), prompt: z.string().min(1), displayPrompt: z.string().exactOptional() }),
    async ({ id, prompt, displayPrompt }, { session }) => ({
      updated: await session.queue.editor.update(id, { prompt, ...defined({ displayPrompt }) }),
    }),
  ),
  "session.queue.duplicateAt": sessionMethod(byId, async ({ id }, { session }) => ({
    id: await session.queue.editor.duplicate(id),
  })),
  "session.queue.sendNow": sessionMethod(byId, ({ id }, { session }) => ({
    steered: session.queue.editor.sendNow(id),
  })),
  "session.queue.setDrainPaused": sessionMethod(
    () => ({ paused: z.boolean() }),
    ({ paused }, { session }) => session.queue.editor.setPaused(paused),
  ),
  // A message that is being answered cannot be withdrawn: that would remove its events from the log.
  "session.queue.withdrawMessage": sessionMethod(byMessage, async ({ messageId, expectedPrompt }, { session }) => {
    const { queued, steering } = session.queue.waiting;
    const message = [...queued, ...steering].find((one) => one.messageId === messageId);
    const isUnchanged = message?.content === expectedPrompt;
    return { removed: isUnchanged && (await session.queue.withdraw(messageId)), interrupted: false };
  }),
  "session.queue.appendSteering": sessionMethod(
    () => ({
      ...byMessage(),
      prompt: z.string().min(1),
      displayPrompt: z.string(),
      attachments: z.array(GivenAttachment).default([]),
    }),
    async ({ messageId, expectedPrompt, ...more }, { session }) => ({
      updated: await session.queue.editor.append(messageId, expectedPrompt, more),
    }),
  ),
  "session.interruptMainTurn": sessionMethod(
    () => ({ flushQueued: z.boolean().default(false) }),
    async ({ flushQueued }, { session }) => {
      const interrupted = session.queue.isWorking;
      if (!flushQueued)
        for (const { messageId } of session.queue.waiting.queued) await session.queue.withdraw(messageId);
      if (interrupted) session.abort();
      return { interrupted };
    },
  ),
};
