import { resolve } from "node:path";
import { CopilotClient, type CopilotClientOptions, RuntimeConnection } from "@github/copilot-sdk";
import { type HttpPlay, type ModelServer, modelServer, type TempFolder, tempFolder } from "../../src/testing/index.ts";

const cliPath = resolve("bin/troupe.js");

/** The published SDK, the built program, a scripted model behind HTTP and a folder of its own. */
export interface ServerStage extends AsyncDisposable {
  readonly folder: TempFolder;
  readonly model: ModelServer;
  readonly client: CopilotClient;
  /** What the model answers to the next calls; nothing may be left of what was given before. */
  play(...steps: readonly HttpPlay[]): void;
  /** Another client with a process of its own, on the same state. */
  newClient(options?: ClientChoice): CopilotClient;
  environment(): Record<string, string>;
}

type ClientChoice = CopilotClientOptions & { readonly transport?: "stdio" | "tcp"; readonly args?: string[] };

export async function serverStage(choice: ClientChoice = {}): Promise<ServerStage> {
  const folder = await tempFolder({ "work/a.txt": "one\ntwo\n" });
  let steps: HttpPlay[] = [];
  const model = await modelServer({
    handler: () => {
      const next = steps.shift();
      if (!next) throw new Error("the model was asked once more than the test expects");
      return next;
    },
  });
  const environment = (): Record<string, string> => ({
    PATH: process.env.PATH ?? "",
    HOME: folder.at("home"),
    TROUPE_NO_DISCOVERY: "1",
    TROUPE_BASE_URL: model.baseUrl,
    TROUPE_MODEL: "faux-model",
  });
  const clients: CopilotClient[] = [];
  const newClient = (more: ClientChoice = {}): CopilotClient => {
    const { transport = "stdio", args = [], ...options } = more;
    const how = { path: cliPath, env: environment(), args };
    const client = new CopilotClient({
      connection: transport === "stdio" ? RuntimeConnection.forStdio(how) : RuntimeConnection.forTcp(how),
      baseDirectory: folder.at("home"),
      workingDirectory: folder.at("work"),
      ...options,
    });
    clients.push(client);
    return client;
  };
  return {
    folder,
    model,
    client: newClient(choice),
    newClient,
    environment,
    play(...next) {
      if (steps.length > 0) throw new Error(`${steps.length} steps of the model were not used`);
      steps = [...next];
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(clients.map((client) => client.stop().catch(() => client.forceStop())));
      await model.close();
      await folder.remove();
    },
  };
}

/** Another client of the server that `first` has started on a port. */
export function joining(first: CopilotClient, options: CopilotClientOptions = {}): CopilotClient {
  const port = Reflect.get(first, "runtimePort");
  const connectionToken = Reflect.get(first, "effectiveConnectionToken");
  const connection = RuntimeConnection.forUri(`localhost:${port}`, { connectionToken });
  return new CopilotClient({ ...options, connection });
}
