import type { SessionUpdate } from "@agentclientprotocol/sdk/unstable";

/** An update, and the session that it belongs to: the editor's own, or one of an agent. */
export interface Update {
  readonly sessionId: string;
  readonly update: SessionUpdate;
  /** Images of a tool's result. They are loaded and added to its content afterwards. */
  readonly images?: readonly { readonly assetId: string; readonly mimeType: string; readonly byteLength: number }[];
}
