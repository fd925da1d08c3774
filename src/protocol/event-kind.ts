import type { EventType } from "./event.ts";
import { eventKinds } from "./event-kinds.derived.ts";

export const isKnownType = (type: string): type is EventType => Object.hasOwn(eventKinds, type);
export const isEphemeral = (type: EventType): boolean => eventKinds[type]?.ephemeral ?? false;
export const isBarrier = (type: EventType): boolean => eventKinds[type]?.barrier ?? false;
