/** How each event is kept, by its type. The build puts the result in the place of this file: a start reads no table. */
import { eventDefinitions } from "./event.ts";

export const eventKinds: Readonly<Record<string, { readonly ephemeral: boolean; readonly barrier: boolean }>> =
  Object.fromEntries(eventDefinitions.map(({ type, ephemeral, barrier }) => [type, { ephemeral, barrier }]));
