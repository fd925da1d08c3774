import { readFileSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { PassThrough, Readable, Writable } from "node:stream";
import {
  type CreateElicitationRequest,
  client as editorApp,
  methods,
  ndJsonStream,
  type RequestPermissionRequest,
  type SessionNotification,
} from "@agentclientprotocol/sdk/unstable";
import { expect } from "vitest";
import * as z from "zod";
import { serveEditor } from "../../src/acp/acp.ts";
import type { Client } from "../../src/sdk/client.ts";
import { createClient } from "../../src/sdk/sdk.ts";
import { inProcess } from "../../src/server/in-process.ts";
import { type FileTree, type HttpStep, type ModelServer, modelServer, tempFolder } from "../../src/testing/index.ts";

type Update = SessionNotification["update"];
type Of<K extends Update["sessionUpdate"]> = Extract<Update, { sessionUpdate: K }>;

export interface StageOptions {
  readonly steps?: readonly HttpStep[];
  readonly files?: FileTree;
  readonly capabilities?: object;
  readonly models?: readonly string[];
  /** Checks with the schema that has the drafts; agreed on by the capability `subagents`, or by a draft method. */
  readonly draft?: boolean;
  readonly environment?: Readonly<Record<string, string>>;
  /** A variable that gets the address of the scripted model. */
  readonly keyedBy?: string;
}

/** An editor: the published client of the protocol, with the agent inside this process. */
export interface Editor {
  readonly cwd: string;
  /** The state folder of the agent. */
  readonly state: string;
  readonly model: ModelServer;
  /** The answer to `initialize`. */
  hello: { readonly authMethods?: readonly object[]; readonly agentCapabilities?: object };
  /** The client of the server that the agent uses itself. */
  readonly client: Client;
  readonly notifications: SessionNotification[];
  /** Every message of the agent as it came: the published client drops fields that it does not know. */
  readonly wire: Wire[];
  readonly asked: RequestPermissionRequest[];
  readonly forms: CreateElicitationRequest[];
  /** Chooses an option of a permission request by its id; undefined closes it without a choice. */
  choose: (request: RequestPermissionRequest) => string | undefined | Promise<string | undefined>;
  fillIn: (request: CreateElicitationRequest) => object | Promise<object>;
  /** Texts that are not saved, by path. Asked for only with the capability `fs`. */
  readonly buffers: Map<string, string>;
  /** Files that the agent had the editor read and write. */
  readonly files: { readonly method: "read" | "write"; readonly path: string }[];
  /** `signal` gives the request up. */
  request<T = Record<string, unknown>>(method: string, params: object, signal?: AbortSignal): Promise<T>;
  notify(method: string, params: object): Promise<void>;
  /** Opens a session and resolves with the answer. */
  open(more?: object): Promise<Opened>;
  prompt(sessionId: string, ...blocks: (string | object)[]): Promise<{ stopReason: string }>;
  updates<K extends Update["sessionUpdate"]>(kind: K, sessionId?: string): Of<K>[];
  said(sessionId?: string): string;
}

export interface Opened {
  readonly sessionId: string;
  readonly modes: { readonly currentModeId: string };
  readonly configOptions: { id: string; category: string; currentValue: string; options: { value: string }[] }[];
}

/** Every message that the agent sends is checked with the published schema, the drafts only where they were agreed on. */
export async function withEditor(options: StageOptions, work: (editor: Editor) => Promise<void>): Promise<void> {
  const { steps = [], files = {}, capabilities = {}, models, environment = {} } = options;
  await using folder = await tempFolder({ "work/a.txt": "one\ntwo\n", ...files });
  await using model = await modelServer({ steps, ...(models && { models }) });
  const cwd = folder.at("work");
  const connection = inProcess({
    environment: {
      PATH: process.env.PATH,
      HOME: folder.at("home"),
      TROUPE_HOME: folder.at("state"),
      TROUPE_NO_DISCOVERY: "1",
      TROUPE_BASE_URL: model.baseUrl,
      TROUPE_MODEL: "faux-model",
      ...environment,
      ...(options.keyedBy !== undefined && { [options.keyedBy]: model.baseUrl }),
    },
    home: folder.at("state"),
    cwd,
  });
  const [toAgent, fromAgent] = [new PassThrough(), new PassThrough()];
  const client = await createClient({ connection });
  const program = ["node", "troupe.js"];
  const serving = serveEditor({
    client,
    input: toAgent,
    output: fromAgent,
    program,
    version: "0",
    say: () => undefined,
  });
  const check = checker(options.draft ?? "subagents" in capabilities);
  const editor = newEditor({ cwd, state: folder.at("state") }, model, client);
  const app = editorApp({ name: "test-editor" })
    .onNotification(methods.client.session.update, ({ params }) => void editor.notifications.push(params))
    .onRequest(methods.client.session.requestPermission, async ({ params }) => {
      editor.asked.push(params);
      const optionId = await editor.choose(params);
      return { outcome: optionId === undefined ? { outcome: "cancelled" } : { outcome: "selected", optionId } };
    })
    .onRequest(methods.client.elicitation.create, async ({ params }) => {
      editor.forms.push(params);
      return (await editor.fillIn(params)) as never;
    })
    .onRequest(methods.client.fs.readTextFile, async ({ params: { path } }) => {
      editor.files.push({ method: "read", path });
      return { content: editor.buffers.get(path) ?? (await readFile(path, "utf8")) };
    })
    .onRequest(methods.client.fs.writeTextFile, async ({ params: { path, content } }) => {
      editor.files.push({ method: "write", path });
      editor.buffers.delete(path);
      await writeFile(path, content);
      return {};
    });
  const stream = ndJsonStream(
    Writable.toWeb(toAgent) as WritableStream<Uint8Array>,
    Readable.toWeb(fromAgent) as unknown as ReadableStream<Uint8Array>,
  );
  const tapped = {
    writable: stream.writable,
    readable: stream.readable.pipeThrough(
      new TransformStream({
        transform(message, controller) {
          editor.wire.push(message as Wire);
          check.received(message as Wire);
          controller.enqueue(message);
        },
      }),
    ),
  };
  await app.connectWith(tapped, async (context) => {
    editor.request = async (method, params, cancellationSignal) => {
      const options = cancellationSignal ? { cancellationSignal } : {};
      const result = await context.request(method as never, params as never, options);
      check.answered(method, result);
      return result as never;
    };
    editor.notify = (method, params) => context.notify(method as never, params as never) as Promise<void>;
    editor.hello = await editor.request("initialize", { protocolVersion: 1, clientCapabilities: capabilities });
    await work(editor);
  });
  toAgent.end();
  await serving;
  expect(check.problems).toEqual([]);
}

function newEditor(place: Pick<Editor, "cwd" | "state">, model: ModelServer, client: Client): Editor {
  const { cwd } = place;
  const editor: Editor = {
    ...place,
    model,
    hello: {},
    client,
    notifications: [],
    wire: [],
    asked: [],
    forms: [],
    choose: () => "once",
    fillIn: () => ({ action: "cancel" }),
    buffers: new Map(),
    files: [],
    request: () => Promise.reject(new Error("not connected")),
    notify: () => Promise.reject(new Error("not connected")),
    open: (more = {}) => editor.request<Opened>("session/new", { cwd, mcpServers: [], ...more }),
    prompt(sessionId, ...blocks) {
      const prompt = blocks.map((block) => (typeof block === "string" ? { type: "text", text: block } : block));
      return editor.request<{ stopReason: string }>("session/prompt", { sessionId, prompt });
    },
    updates: <K extends Update["sessionUpdate"]>(kind: K, sessionId?: string) =>
      editor.notifications
        .filter((one) => sessionId === undefined || one.sessionId === sessionId)
        .map(({ update }) => update)
        .filter((update): update is Of<K> => update.sessionUpdate === kind),
    said: (sessionId) =>
      editor
        .updates("agent_message_chunk", sessionId)
        .map(({ content }) => (content.type === "text" ? content.text : ""))
        .join(""),
  };
  return editor;
}

interface Wire {
  readonly id?: unknown;
  readonly method?: string;
  readonly params?: unknown;
}

/** The published JSON schema, which forgives less than the published client. */
function checker(isDraft: boolean) {
  const path = createRequire(import.meta.url).resolve(
    `@agentclientprotocol/sdk/schema/v1/${isDraft ? "schema.unstable" : "schema"}.json`,
  );
  const { $schema, $defs } = withoutCustom(JSON.parse(readFileSync(path, "utf8")));
  const problems: string[] = [];
  const known = new Map<string, z.ZodType>();
  const check = (name: string, value: unknown): void => {
    const schema = known.get(name) ?? z.fromJSONSchema({ $schema, $ref: `#/$defs/${name}`, $defs });
    known.set(name, schema);
    const result = schema.safeParse(value);
    if (!result.success) problems.push(`${name}: ${JSON.stringify(value)}\n${z.prettifyError(result.error)}`);
  };
  const nameOf = (method: string, side: string, end: string): string | undefined =>
    Object.entries<Record<string, unknown>>($defs).find(
      ([name, entry]) => entry["x-method"] === method && entry["x-side"] === side && name.endsWith(end),
    )?.[0];
  return {
    problems,
    received({ method, params }: Wire): void {
      if (method === undefined) return;
      const side = method.startsWith("$/") ? "protocol" : "client";
      const name = nameOf(method, side, "Request") ?? nameOf(method, side, "Notification");
      if (name === undefined) problems.push(`${method} is not a method of the protocol`);
      else check(name, params);
    },
    answered(method: string, result: unknown): void {
      const name = nameOf(method, "agent", "Response");
      if (name === undefined) problems.push(`${method} is not a method of the protocol`);
      else check(name, result);
    },
  };
}

/** Drops the variants for extensions ("anything but the known ones"): the agent sends none. */
function withoutCustom<T>(schema: T): T {
  if (Array.isArray(schema)) {
    const kept = schema.filter((part) => !(typeof part === "object" && part !== null && "not" in part));
    return kept.map(withoutCustom) as T;
  }
  if (typeof schema !== "object" || schema === null) return schema;
  return Object.fromEntries(Object.entries(schema).map(([name, value]) => [name, withoutCustom(value)])) as T;
}
