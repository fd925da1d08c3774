import { fileURLToPath } from "node:url";
import { quoted, quotedLine, wrapped } from "../lib/quoting.ts";
import { clip } from "../lib/text.ts";
import type { Attachment, SessionEvent } from "../protocol/event.ts";
import type { Peer } from "../protocol/rpc/peer.ts";
import type { Client } from "../sdk/client.ts";
import type { McpServer, PermissionDecision, PermissionRequest, SessionConfig } from "../sdk/config.ts";
import type { ClientSession } from "../sdk/session.ts";
import type { Block, Place, ServerEntry } from "./params.ts";
import { askedFor, type Choice, choicesFor } from "./permission.ts";
import { updateOf } from "./updates.ts";

type StopReason = "end_turn" | "cancelled" | "max_turn_requests" | "refusal";

/** One session of an editor: prompts in, updates and questions out. */
export class EditorSession {
  readonly #session: ClientSession;
  readonly #peer: Peer;
  #isCancelled = false;
  #limit: "max_turn_requests" | undefined;

  static create(client: Client, peer: Peer, place: Place): Promise<EditorSession> {
    return EditorSession.#open(peer, place, (config) => client.createSession(config));
  }

  static load(client: Client, peer: Peer, place: Place & { readonly sessionId: string }): Promise<EditorSession> {
    return EditorSession.#open(peer, place, (config) => client.resumeSession(place.sessionId, config));
  }

  static async #open(
    peer: Peer,
    place: Place,
    make: (config: SessionConfig) => Promise<ClientSession>,
  ): Promise<EditorSession> {
    const session = await make({
      workingDirectory: place.cwd,
      streaming: true,
      enableConfigDiscovery: true,
      clientName: "acp",
      memory: { enabled: true },
      mcpServers: Object.fromEntries(place.mcpServers.map((entry) => [entry.name, serverOf(entry)])),
      onPermissionRequest: (request, { sessionId }) => ask(peer, sessionId, request),
    });
    return new EditorSession(session, peer);
  }

  private constructor(session: ClientSession, peer: Peer) {
    this.#session = session;
    this.#peer = peer;
    session.on((event) => this.#hear(event));
  }

  get sessionId(): string {
    return this.#session.sessionId;
  }

  /** Until the session is idle. What goes wrong is an error of the request. */
  async prompt(blocks: readonly Block[]): Promise<StopReason> {
    this.#isCancelled = false;
    this.#limit = undefined;
    const { prompt, attachments } = messageOf(blocks);
    await this.#session
      .sendAndWait({ prompt, ...(attachments.length > 0 && { attachments }) })
      .catch((error: unknown) => {
        if (!this.#isCancelled) throw error;
      });
    return this.#isCancelled ? "cancelled" : (this.#limit ?? "end_turn");
  }

  cancel(): void {
    this.#isCancelled = true;
    this.#session.abort().catch(() => undefined); // a session that is gone needs no stopping
  }

  /** What was said before, for an editor that shows it again. */
  async replay(): Promise<void> {
    for (const event of await this.#session.getEvents()) this.#tell(updateOf(event, "replay"));
  }

  async modes(): Promise<object> {
    return { currentModeId: await this.#session.rpc.mode.get(), availableModes: MODES };
  }

  async setMode(mode: "interactive" | "plan" | "autopilot"): Promise<void> {
    await this.#session.rpc.mode.set({ mode });
  }

  #hear(event: SessionEvent): void {
    if (event.type === "troupe.limit_reached") this.#limit = "max_turn_requests";
    if (event.type === "session.mode_changed") {
      this.#tell({ sessionUpdate: "current_mode_update", currentModeId: event.data.newMode });
    }
    this.#tell(updateOf(event, "live"));
  }

  #tell(update: object | undefined): void {
    if (update) this.#peer.notify("session/update", { sessionId: this.sessionId, update });
  }
}

const MODES = [
  { id: "interactive", name: "Ask", description: "Asks before it changes anything" },
  { id: "plan", name: "Plan", description: "Looks, and changes nothing but a plan" },
  { id: "autopilot", name: "Autopilot", description: "Goes on until the task is done" },
];

async function ask(peer: Peer, sessionId: string, request: PermissionRequest): Promise<PermissionDecision> {
  const answer = await peer.ask("session/request_permission", { sessionId, ...askedFor(request) });
  const { outcome } = answer as { outcome?: { outcome?: string; optionId?: string } };
  if (outcome?.outcome !== "selected") return { kind: "user-not-available" };
  const chosen: Choice | undefined = choicesFor(request).find(({ optionId }) => optionId === outcome.optionId);
  return chosen?.decision ?? { kind: "user-not-available" };
}

function serverOf(entry: ServerEntry): McpServer {
  const pairs = (list: readonly { name: string; value: string }[]) =>
    Object.fromEntries(list.map(({ name, value }) => [name, value]));
  if ("url" in entry) return { type: entry.type, url: entry.url, headers: pairs(entry.headers), tools: ["*"] };
  return { type: "stdio", command: entry.command, args: entry.args, env: pairs(entry.env), tools: ["*"] };
}

/** Text is the prompt; the rest goes with it as what it is. What an editor quotes is data, and says where it is from. */
function messageOf(blocks: readonly Block[]): { prompt: string; attachments: Attachment[] } {
  const texts: string[] = [];
  const attachments: Attachment[] = [];
  for (const block of blocks) {
    if (block.type === "text") texts.push(block.text);
    else if (block.type === "image") attachments.push({ type: "blob", mimeType: block.mimeType, data: block.data });
    else if (block.type === "resource_link") {
      const file = fileOf(block.uri, block.name);
      if (file) attachments.push(file);
      else texts.push(linked(block));
    } else texts.push(`Quoted from ${quotedLine(block.resource.uri)}:\n\n${quoted(block.resource.text ?? "")}`);
  }
  return { prompt: texts.join("\n\n"), attachments };
}

/** An address that the editor names and that is no file: data, whatever it says. */
const linked = ({ uri, name }: { uri: string; name: string }): string =>
  wrapped("linked_resource", { name }, clip(quoted(uri).replace(/\s+/g, " "), MAX_URI_CHARACTERS));

const MAX_URI_CHARACTERS = 4096;

function fileOf(uri: string, name: string): Attachment | undefined {
  if (!uri.startsWith("file://")) return undefined;
  return { type: "file", path: fileURLToPath(uri), displayName: name };
}
