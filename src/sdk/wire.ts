import { encodeFrame, type Frame, FrameReader } from "../protocol/rpc/frame.ts";
import { type AskOptions, Peer } from "../protocol/rpc/peer.ts";
import type { Transport } from "./transport.ts";

export interface WireHandlers {
  answer(method: string, params: unknown): Promise<unknown>;
  hear(method: string, params: unknown): void;
}

/** A server's messages reach a program in the order they were sent, each after what its forerunner set off. */
const limits = { bytes: 256 * 1024 * 1024, depth: 256, marks: 50_000_000 };

/** The client's side of a conversation with a server. */
export class Wire {
  readonly #peer: Peer;
  #frames: Frame[] = [];
  #isDelivering = false;

  constructor(transport: Transport, handlers: WireHandlers) {
    const { input, output } = transport;
    this.#peer = new Peer({
      send: (message) => void output.write(encodeFrame(message)),
      handle: (method, params) => handlers.answer(method, params),
      onNotification: (method, params) => handlers.hear(method, params),
    });
    const reader = new FrameReader(limits);
    input.on("data", (chunk: Uint8Array) => {
      try {
        this.#frames.push(...reader.read(chunk));
      } catch {
        transport.kill(); // what comes is no message: the end is told by the transport
        return;
      }
      if (!this.#isDelivering) void this.#deliver();
    });
    // Errors of a pipe are told by its end.
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
   * One by one: whoever waits for an answer goes on before the next message is heard, so that "after the answer" means the
   * same here as on the wire.
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
