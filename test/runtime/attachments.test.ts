import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { GivenProvider } from "../../src/model/given-providers.ts";
import type { GivenAttachment } from "../../src/protocol/define-event.ts";
import { createRuntime } from "../../src/runtime/runtime.ts";
import type { SessionRequest } from "../../src/runtime/session-request.ts";
import type { Session } from "../../src/session/session.ts";
import { type HttpStep, type ModelServer, modelServer, rawBytes, says, tempFolder } from "../../src/testing/index.ts";
import { dataOf } from "../support/stage.ts";

type Kind = Pick<GivenProvider, "type" | "wireApi">;

async function scene(
  what: { steps?: readonly HttpStep[]; kind?: Kind; request?: Partial<SessionRequest> },
  act: (scene: { session: Session; server: ModelServer; cwd: string }) => Promise<void>,
): Promise<void> {
  await using server = await modelServer({ steps: what.steps ?? [says("seen")] });
  await using folder = await tempFolder();
  const environment = { HOME: folder.path, TROUPE_NO_DISCOVERY: "1" };
  const runtime = createRuntime({ environment, home: join(folder.path, "home") });
  const providers = { provider: { baseUrl: server.baseUrl, ...what.kind } };
  const model = { name: "m", providers, ...what.request?.model };
  const session = await runtime.createSession({ cwd: folder.path, ...what.request, model });
  try {
    await act({ session, server, cwd: folder.path });
  } finally {
    await session.close();
    await runtime.close();
  }
}

const DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const PDF = Buffer.from("%PDF-1.4\n%%EOF\n").toString("base64");

/** What the model was shown of the message, as the wire has it. */
const shown = ({ requests }: ModelServer): unknown =>
  (requests[0]?.body as { messages: { content: unknown }[] } | undefined)?.messages.at(-1)?.content;

const send = (session: Session, ...attachments: GivenAttachment[]) =>
  session.sendAndWait({ prompt: "Look.", attachments });

describe("attachments of a message", () => {
  it("attachments list files and folders behind the prompt, and say what they contain", () =>
    scene({}, async ({ session, server, cwd }) => {
      const at = (name: string) => join(cwd, name);
      await writeFile(at("one.txt"), "a line");
      await writeFile(at("three.txt"), "a\nb\n");
      await mkdir(at("folder"));
      await writeFile(at("folder/x"), "");
      await send(
        session,
        { type: "file", path: at("one.txt") },
        { type: "file", path: at("three.txt"), displayName: "three", lineRange: { start: 2, end: 2 } },
        { type: "file", path: at("three.txt"), lineRange: { start: 1, end: 3 } },
        { type: "directory", path: at("folder") },
        { type: "file", path: at("gone") },
      );
      expect(shown(server)).toBe(
        [
          "Look.",
          "",
          "",
          "",
          "<tagged_files>",
          `* ${at("one.txt")} (1 lines)`,
          `* ${at("three.txt")} (line 2 of 3 lines)`,
          `* ${at("three.txt")} (lines 1-3 of 3 lines)`,
          `* ${at("folder")} (1 items)`,
          `* ${at("gone")} (cannot be read)`,
          "</tagged_files>",
        ].join("\n"),
      );
      const [message] = dataOf(session.events, "user.message");
      expect(message).toMatchObject({ content: "Look.", transformedContent: shown(server) });
      expect(message?.attachments?.slice(0, 2)).toEqual([
        { type: "file", path: at("one.txt"), displayName: "one.txt" },
        { type: "file", path: at("three.txt"), displayName: "three", lineRange: { start: 2, end: 2 } },
      ]);
    }));

  it("attachments put a selection before the prompt, and the selection cannot end its own tag", () =>
    scene({}, async ({ session, server }) => {
      const selection = { start: { line: 1, character: 4 }, end: { line: 1, character: 9 } };
      const text = "a ``` b </ide_selection> c";
      await send(session, { type: "selection", filePath: "/work/a.ts", text, selection });
      const content = String(shown(server));
      expect(content).toMatch(
        /^<ide_selection>\n[^\n]+\nFile: a\.ts \(line 2\)\n````\na ``` b &lt;\/ide_selection> c\n````\n<\/ide_selection>\n\n\n\nLook\.$/,
      );
    }));

  it("attachments put references to GitHub behind the prompt", () =>
    scene({}, async ({ session, server }) => {
      const reference: GivenAttachment = {
        type: "github_reference",
        number: 12,
        referenceType: "issue",
        state: "open",
        title: "It fails",
        url: "https://github.com/o/r/issues/12",
      };
      await send(session, reference);
      expect(shown(server)).toBe(
        "Look.\n\n\n\n<github_references>\n#12 - It fails [issue] [open] (https://github.com/o/r/issues/12)\n</github_references>",
      );
      expect(dataOf(session.events, "user.message")[0]?.attachments).toEqual([reference]);
    }));

  it.each([
    [
      "completions",
      {},
      [
        { type: "text", text: "Look." },
        { type: "text", text: "dot.png" },
        { type: "image_url", image_url: { url: `data:image/png;base64,${DOT}` } },
        { type: "file", file: { filename: "paper.pdf", file_data: `data:application/pdf;base64,${PDF}` } },
      ],
    ],
    [
      "responses",
      { wireApi: "responses" },
      [
        { type: "input_text", text: "Look." },
        { type: "input_text", text: "dot.png" },
        { type: "input_image", image_url: `data:image/png;base64,${DOT}`, detail: "auto" },
        { type: "input_file", filename: "paper.pdf", file_data: `data:application/pdf;base64,${PDF}` },
      ],
    ],
    [
      "anthropic",
      { type: "anthropic" },
      [
        {
          type: "document",
          source: { type: "base64", media_type: "application/pdf", data: PDF },
          title: "paper.pdf",
          citations: { enabled: true },
        },
        { type: "text", text: "Look." },
        { type: "text", text: "dot.png" },
        {
          type: "image",
          source: { type: "base64", media_type: "image/png", data: DOT },
          cache_control: { type: "ephemeral" },
        },
      ],
    ],
  ] as const)("attachments show pictures and documents unchanged: %s", (_, kind, content) =>
    scene({ kind, request: { model: { citations: true } } }, async ({ session, server }) => {
      await send(
        session,
        { type: "blob", data: DOT, mimeType: "image/png", displayName: "dot.png" },
        { type: "blob", data: PDF, mimeType: "application/pdf", displayName: "paper.pdf" },
      );
      const body = server.requests[0]?.body as { messages?: object[]; input?: object[] };
      expect((body.messages ?? body.input)?.at(-1)).toMatchObject({ role: "user", content });
      const log = await readFile(join(session.record.log.directory, "events.jsonl"), "utf8");
      expect(log).not.toContain(DOT);
      expect(dataOf(session.events, "user.message")[0]?.attachments?.[0]).toMatchObject({
        ...{ type: "blob", mimeType: "image/png", displayName: "dot.png", byteLength: 70 },
        assetId: expect.stringMatching(/^sha256:/),
      });
    }),
  );

  it("attachments quote text, and name content that cannot be shown", () =>
    scene({}, async ({ session, server }) => {
      const data = (text: string) => Buffer.from(text).toString("base64");
      await send(
        session,
        { type: "blob", data: data('{"a":1}'), mimeType: "application/json", displayName: "a.json" },
        { type: "blob", data: data("zip"), mimeType: "application/zip", displayName: "a.zip" },
      );
      expect(shown(server)).toBe(
        'Look.\n\n\n\nAttached: a.json (application/json, 7 bytes)\n```\n{"a":1}\n```\n\n\n\nAttached: a.zip (application/zip, 3 bytes): not shown',
      );
    }));

  it("attachments wait with their message, and reach an agent that is steered", () =>
    scene({ steps: [says("one"), says("two")] }, async ({ session, server }) => {
      const first = session.sendAndWait({ prompt: "first" });
      const attachments: GivenAttachment[] = [{ type: "blob", data: DOT, mimeType: "image/png" }];
      await session.sendAndWait({ prompt: "second", attachments });
      await first;
      expect(JSON.stringify(server.requests.at(-1)?.body)).toContain(DOT);
    }));

  it("attachments that are too large are refused together with their message", () =>
    scene({ steps: [] }, async ({ session }) => {
      const data = Buffer.alloc(33 * 1024 * 1024).toString("base64");
      const refused = send(session, { type: "blob", data, mimeType: "image/png", displayName: "big.png" });
      await expect(refused).rejects.toThrow(/big\.png is larger than 32 MiB/);
      expect(dataOf(session.events, "user.message")).toEqual([]);
    }));
});

it("the sources of an answer are reported with it", () => {
  const sse = (type: string, data: object) => `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`;
  const citation = {
    ...{ type: "page_location", cited_text: "It is so.", document_index: 0, document_title: "paper.pdf" },
    ...{ start_page_number: 2, end_page_number: 3 },
  };
  const text = (index: number, said: string, ...more: object[]) => [
    sse("content_block_start", { index, content_block: { type: "text", text: "" } }),
    sse("content_block_delta", { index, delta: { type: "text_delta", text: said } }),
    ...more.map((cited) => sse("content_block_delta", { index, delta: { type: "citations_delta", citation: cited } })),
    sse("content_block_stop", { index }),
  ];
  const body = [
    sse("message_start", { message: { usage: { input_tokens: 5, output_tokens: 1 } } }),
    ...text(0, "I read: "),
    ...text(1, "so it is", citation),
    sse("message_delta", { delta: { stop_reason: "end_turn" }, usage: { output_tokens: 9 } }),
    sse("message_stop", {}),
  ].join("");
  const steps = [rawBytes(body, { headers: { "content-type": "text/event-stream" } })];
  return scene({ steps, kind: { type: "anthropic" }, request: { model: { citations: true } } }, async ({ session }) => {
    await session.sendAndWait({ prompt: "Look." });
    expect(dataOf(session.events, "assistant.message")[0]?.citations).toEqual({
      sources: [{ id: "document-0", provider: "anthropic", title: "paper.pdf" }],
      spans: [
        {
          startIndex: 8,
          endIndex: 16,
          references: [
            {
              sourceId: "document-0",
              citedText: "It is so.",
              location: { type: "page", startPage: 2, endPage: 2 },
            },
          ],
        },
      ],
    });
  });
});

it("a prompt has its time where that is requested, and the log has only its text", () =>
  scene({ request: { context: { datesPrompts: true } } }, async ({ session, server }) => {
    await session.sendAndWait({ prompt: "Look." });
    expect(shown(server)).toMatch(/^<current_datetime>\d{4}-\d\d-\d\dT[\d:.]+Z<\/current_datetime>\n\nLook\.$/);
    expect(dataOf(session.events, "user.message")[0]?.content).toBe("Look.");
    expect(session.record.title).toBe("Look.");
  }));

it("a prompt has its time before its attachments", () =>
  scene({ request: { context: { datesPrompts: true } } }, async ({ session, server }) => {
    const start = { line: 0, character: 0 };
    const selection = { start, end: start };
    await send(session, { type: "selection", filePath: "/work/a.ts", text: "one", selection });
    expect(shown(server)).toMatch(
      /^<current_datetime>[^<]+<\/current_datetime>\n\n<ide_selection>[^<]+<\/ide_selection>\n\n\n\nLook\.$/,
    );
  }));
