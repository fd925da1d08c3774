import type { Message } from "../../protocol/message.ts";

/** Removes images for a model without vision. The same message gives the same result, so that a wire can cache it. */
export function imageRemover(): (messages: readonly Message[]) => readonly Message[] {
  const made = new WeakMap<Message, Message>();
  const bare = (message: Message): Message => {
    if (message.role === "assistant" || !message.images?.length) return message;
    const known = made.get(message);
    if (known) return known;
    const { images: _, ...rest } = message;
    made.set(message, rest);
    return rest;
  };
  return (messages) => messages.map(bare);
}
