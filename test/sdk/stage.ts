import { resolve } from "node:path";
import { type ClientOptions, type Connection, createClient, type SessionConfig } from "../../src/sdk/index.ts";
import { inProcess } from "../../src/server/index.ts";
import { type HttpStep, type ModelServer, modelServer, type TempFolder, tempFolder } from "../../src/testing/index.ts";

/** The ways to reach a server that a program may choose; the same tests run over each. */
export const ways = ["a process of its own", "this process"] as const;
export type Way = (typeof ways)[number];

export interface SdkStage extends AsyncDisposable {
  readonly folder: TempFolder;
  readonly model: ModelServer;
  /** Points a session at the scripted model. */
  readonly provider: NonNullable<SessionConfig["provider"]>;
  client(options?: ClientOptions): ReturnType<typeof createClient>;
}

export async function sdkStage(way: Way, ...steps: readonly HttpStep[]): Promise<SdkStage> {
  const folder = await tempFolder({ "work/a.txt": "one\ntwo\n" });
  const model = await modelServer({ steps });
  const environment = {
    PATH: process.env.PATH,
    HOME: folder.at("home"),
    TROUPE_NO_DISCOVERY: "1",
    TROUPE_BASE_URL: model.baseUrl,
    TROUPE_MODEL: "faux-model",
  };
  const connection: Connection =
    way === "this process"
      ? inProcess({ environment, home: folder.at("state"), cwd: folder.at("work") })
      : { kind: "stdio", path: resolve("bin/troupe.js") };
  return {
    folder,
    model,
    provider: { baseUrl: model.baseUrl, modelId: "faux-model" },
    client: (options = {}) =>
      createClient({
        connection,
        environment,
        home: folder.at("state"),
        workingDirectory: folder.at("work"),
        ...options,
      }),
    async [Symbol.asyncDispose]() {
      await model.close();
      await folder.remove();
    },
  };
}
