/** Messages of the event stream, as `web/tab-stream.ts` writes them: each has one line of data. */

export interface ServerMessage {
  readonly kind: string;
  /** -1 for messages without one. */
  readonly id: number;
  readonly data: string;
}

export async function* serverMessages(body: ReadableStream<Uint8Array>): AsyncGenerator<ServerMessage> {
  const reader = body.pipeThrough(new TextDecoderStream() as TransformStream<Uint8Array, string>).getReader();
  // A long message comes in many pieces: they are joined once, when its end is there.
  let pieces: string[] = [];
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      const before = pieces.at(-1) ?? "";
      pieces.push(next.value);
      if (!next.value.includes("\n\n") && !(before.endsWith("\n") && next.value.startsWith("\n"))) continue;
      const blocks = pieces.join("").split("\n\n");
      pieces = [blocks.pop() ?? ""];
      for (const block of blocks) {
        const message = parseBlock(block);
        if (message) yield message;
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

function parseBlock(block: string): ServerMessage | undefined {
  const field = (name: string): string | undefined => {
    const line = block.split("\n").find((one) => one.startsWith(`${name}: `));
    return line?.slice(name.length + 2);
  };
  const data = field("data");
  return data === undefined ? undefined : { kind: field("event") ?? "", id: Number(field("id") ?? -1), data };
}
