import type { Image, Message } from "../protocol/message.ts";
import type { SessionLog } from "../store/store.ts";
import type { Conversation } from "./conversation.ts";

/**
 * The messages of a conversation as a model is shown them, with pictures read from their files. Messages keep their
 * identity from call to call, so a wire can remember how it encoded each.
 */
export class History {
  readonly #conversation: Conversation;
  readonly #assets: Pick<SessionLog, "readAsset">;
  readonly #messages: Message[] = [];
  #characters = 0;
  #version = 0;

  constructor(conversation: Conversation, assets: Pick<SessionLog, "readAsset">) {
    this.#conversation = conversation;
    this.#assets = assets;
  }

  /** How long the text of all messages is, for estimates. */
  get characters(): number {
    return this.#characters;
  }

  get length(): number {
    return this.#messages.length;
  }

  async messages(): Promise<readonly Message[]> {
    const { entries, version } = this.#conversation;
    if (version !== this.#version) {
      this.#messages.length = 0;
      this.#characters = 0;
      this.#version = version;
    }
    for (let index = this.#messages.length; index < entries.length; index++) {
      const entry = entries[index];
      if (!entry) break;
      const { message, assets } = entry;
      this.#characters += message.content.length;
      if (assets.length === 0 || message.role === "assistant") this.#messages.push(message);
      else this.#messages.push({ ...message, images: await this.#load(assets) });
    }
    return this.#messages.slice();
  }

  async #load(assets: readonly { assetId: string; mimeType: string }[]): Promise<Image[]> {
    const images: Image[] = [];
    for (const { assetId, mimeType } of assets) {
      const bytes = await this.#assets.readAsset(assetId);
      if (bytes) images.push({ mimeType, data: Buffer.from(bytes).toString("base64") });
    }
    return images;
  }
}
