/** `troupe web`: the dashboard in the browser, on this machine only. */
import { spawn } from "node:child_process";
import { nodeDisk } from "../../lib/node/disk.ts";
import { systemStamp } from "../../lib/stamp.ts";
import { createRuntime } from "../../runtime/runtime.ts";
import { version } from "../../runtime/version.ts";
import { createClient } from "../../sdk/sdk.ts";
import { inProcess } from "../../server/in-process.ts";
import { startWeb } from "../../web/web.ts";
import { type Arguments, usage } from "../args.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { type Launcher, ownProgram } from "../launcher.ts";
import { write } from "../output/output.ts";
import { say } from "../output/say.ts";
import { pageFolder } from "../page-folder.ts";
import { sessionRequest } from "../prompt-mode.ts";
import { onInterrupt } from "../signals.ts";

export async function webCommand(given: Arguments, launcher: Launcher): Promise<ExitCode> {
  if (given.words.length > 1) throw usage(`troupe web takes no "${given.words[1]}".`);
  const port = given.amount("port", "whole");
  if (port !== undefined && port > 65_535) throw usage(`--port needs a number up to 65535, not "${port}".`);
  const environment = { ...process.env };
  const { cwd, ...defaults } = sessionRequest(given, "json");
  const { importModule } = launcher;
  const program = ownProgram();
  const client = await createClient({
    connection: inProcess({ environment, cwd, defaults, importModule, program, say, isJoinable: true }),
  });
  const web = await startWeb({
    ...{ client, cwd, port, version },
    runtime: createRuntime({ environment, importModule }),
    disk: nodeDisk,
    stamp: systemStamp,
    environment,
    assets: pageFolder(),
  });
  const interrupted = new Promise<void>((resolve) => onInterrupt(resolve));
  try {
    const address = web.address();
    await write(`troupe web: ${address}\n`);
    say("the address works once; press Enter for another one, Ctrl+C to stop");
    if (!given.has("no-open")) openBrowser(address);
    const stopReading = onEnter(() => void write(`troupe web: ${web.address()}\n`));
    await interrupted;
    stopReading();
  } finally {
    await web.close();
  }
  return exitCodes.done;
}

/** Opens the user's browser where one is known. A failure does no harm: the address is printed. */
function openBrowser(address: string): void {
  if (!process.stdout.isTTY) return;
  const [program, ...args] =
    process.platform === "darwin"
      ? ["open", address]
      : process.platform === "win32"
        ? ["rundll32", "url.dll,FileProtocolHandler", address]
        : ["xdg-open", address];
  if (program === undefined) return;
  const child = spawn(program, args, { stdio: "ignore", detached: true });
  child.on("error", () => undefined);
  child.unref();
}

function onEnter(listener: () => void): () => void {
  const { stdin } = process;
  const read = (piece: Buffer): void => {
    if (piece.includes("\n")) listener();
  };
  stdin.on("data", read);
  stdin.on("error", () => undefined);
  stdin.resume();
  return () => {
    stdin.off("data", read);
    stdin.pause();
  };
}
