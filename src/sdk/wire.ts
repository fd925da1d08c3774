import { encodeFrame, type Frame, FrameReader } from "../protocol/rpc/frame.ts";
import { type AskOptions, Peer } from "../protocol/rpc/peer.ts";
import type { Transport } from "./transport.ts";

export interface WireHandlers {
  answer(method: string, params: unknown): Promise<unknown>;
  onNotification(method: string, params: unknown): void;
}

/** Limits for messages of a server. */
const limits = { bytes: 256 * 1024 * 1024, depth: 256, marks: 50_000_000 };

/** The client's side of a connection to a server. */
export class Wire {
  readonly #peer: Peer;
  #frames: Frame[] = [];
  #isDelivering = false;

  constructor(transport: Transport, handlers: WireHandlers) {
    const { input, output } = transport;
    this.#peer = new Peer({
      send: (message) => void output.write(encodeFrame(message)),
      handle: (method, params) => handlers.answer(method, params),
      onNotification: (method, params) => handlers.onNotification(method, params),
    });
    const reader = new FrameReader(limits);
    input.on("data", (chunk: Uint8Array) => {
      try {
        this.#frames.push(...reader.read(chunk));
      } catch {
        transport.kill(); // the input is not a message; the transport reports the end
        return;
      }
      if (!this.#isDelivering) void this.#deliver();
    });
    // The stream's end reports the error.
    input.on("error", () => undefined);
    output.on("error", () => undefined);
  }

  ask(method: string, params: object, options?: AskOptions): Promise<unknown> {
    return this.#peer.ask(method, params, options);
  }

  close(why: string): void {
    this.#peer.close(why);
    this.#frames = [];
  }

  /**
   * Delivers messages one by one: code that waits for a response continues before the next message is handled. So the
   * order in the program is the order on the wire.
   */
  async #deliver(): Promise<void> {
    this.#isDelivering = true;
    while (this.#frames.length > 0) {
      const batch = this.#frames;
      this.#frames = [];
      for (const frame of batch) {
        this.#peer.receive(frame);
        if (isAnswer(frame)) await new Promise((resolve) => setImmediate(resolve));
      }
    }
    this.#isDelivering = false;
  }
}

function isAnswer(frame: Frame): boolean {
  return (
    frame.kind === "message" && typeof frame.value === "object" && frame.value !== null && !("method" in frame.value)
  );
}
