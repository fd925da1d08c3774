/**
 * How each event type is stored. The build replaces this file with its result, so that a start does not evaluate the
 * tables.
 */
import { eventDefinitions } from "./event.ts";

export const eventKinds: Readonly<Record<string, { readonly ephemeral: boolean; readonly barrier: boolean }>> =
  Object.fromEntries(eventDefinitions.map(({ type, ephemeral, barrier }) => [type, { ephemeral, barrier }]));
