import { messageTokens } from "../context/compact-tokens.ts";
import { defined } from "../lib/defined.ts";
import type { Document, Image, Message } from "../protocol/message.ts";
import type { SessionLog } from "../store/store.ts";
import { PDF } from "./attachments.ts";
import type { Asset, Conversation, ConversationEntry } from "./conversation.ts";

/**
 * A conversation's messages as a model receives them, with images read from their files. Messages keep their identity
 * between calls, so a wire can cache how it encoded each.
 */
export class History {
  readonly conversation: Conversation;
  readonly #assets: Pick<SessionLog, "readAsset">;
  readonly #messages: Message[] = [];
  readonly #sizes: number[] = [];
  #characters = 0;
  #tokens = 0;
  #version = 0;

  constructor(conversation: Conversation, assets: Pick<SessionLog, "readAsset">) {
    this.conversation = conversation;
    this.#assets = assets;
  }

  /** The total length of all messages, for estimates. */
  get characters(): number {
    return this.#characters;
  }

  /** Estimated tokens of all messages. */
  get tokens(): number {
    return this.#tokens;
  }

  /** Estimated tokens of each message. */
  get sizes(): readonly number[] {
    return this.#sizes;
  }

  get length(): number {
    return this.#messages.length;
  }

  async messages(): Promise<readonly Message[]> {
    for (;;) {
      const { entries, version } = this.conversation;
      if (version !== this.#version) this.#forget(version);
      const entry = entries[this.#messages.length];
      if (!entry) return this.#messages.slice();
      if (!needsLoading(entry)) this.#add(entry.message);
      else {
        const length = this.#messages.length;
        const message = { ...entry.message, ...(await this.#load(entry.assets)) };
        // Meanwhile another caller may have read on, or the conversation may have been replaced.
        const isNext = this.#messages.length === length && this.conversation.version === version;
        if (isNext && this.#version === version) this.#add(message);
      }
    }
  }

  #add(message: Message): void {
    const size = messageTokens(message);
    this.#messages.push(message);
    this.#sizes.push(size);
    this.#tokens += size;
    this.#characters += message.content.length;
  }

  #forget(version: number): void {
    this.#messages.length = 0;
    this.#sizes.length = 0;
    this.#tokens = 0;
    this.#characters = 0;
    this.#version = version;
  }

  async #load(assets: readonly Asset[]): Promise<{ images?: Image[]; documents?: Document[] }> {
    const images: Image[] = [];
    const documents: Document[] = [];
    for (const { assetId, mimeType, description } of assets) {
      const bytes = await this.#assets.readAsset(assetId);
      if (!bytes) continue;
      const data = Buffer.from(bytes).toString("base64");
      if (mimeType === PDF) documents.push({ mimeType, data, title: description ?? "document.pdf" });
      else images.push({ mimeType, data, ...defined({ description }) });
    }
    return { ...(images.length > 0 && { images }), ...(documents.length > 0 && { documents }) };
  }
}

const needsLoading = ({ assets, message }: ConversationEntry): boolean =>
  assets.length > 0 && message.role !== "assistant";
