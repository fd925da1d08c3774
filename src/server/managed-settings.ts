import type { EventData } from "../protocol/event.ts";

/**
 * The state of policies that an organisation manages: this server applies none, and refuses sessions that request one.
 */
export const noManagedSettings: EventData<"session.managed_settings_resolved"> = {
  source: "none",
  serverManaged: false,
  deviceManaged: false,
  failClosed: false,
  bypassPermissionsDisabled: false,
  managedKeys: [],
};
