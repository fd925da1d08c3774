/** `troupe web`: the dashboard in the browser, on this machine only. */
import { nodeDisk } from "../../lib/node/disk.ts";
import { systemStamp } from "../../lib/stamp.ts";
import { createRuntime } from "../../runtime/runtime.ts";
import { version } from "../../runtime/version.ts";
import { createClient } from "../../sdk/sdk.ts";
import { inProcess } from "../../server/in-process.ts";
import { openBrowser } from "../../web/open-browser.ts";
import { startWeb } from "../../web/web.ts";
import { type Arguments, usage } from "../args.ts";
import { chosenDatabase } from "../cluster/database-url.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { type Launcher, ownProgram } from "../launcher.ts";
import { write } from "../output/output.ts";
import { printMessage } from "../output/print-message.ts";
import { pageFolder } from "../page-folder.ts";
import { sessionRequest } from "../prompt-mode.ts";
import { onInterrupt } from "../signals.ts";

export async function webCommand(given: Arguments, launcher: Launcher): Promise<ExitCode> {
  if (given.words.length > 1) throw usage(`troupe web takes no "${given.words[1]}".`);
  const database = chosenDatabase(given);
  const port = given.amount("port", "whole");
  if (port !== undefined && port > 65_535) throw usage(`--port needs a number up to 65535, not "${port}".`);
  const environment = { ...process.env };
  const { cwd, ...defaults } = sessionRequest(given, "json");
  const { importModule } = launcher;
  const program = ownProgram();
  const client = await createClient({
    connection: inProcess({ environment, cwd, defaults, importModule, program, say: printMessage, isJoinable: true }),
  });
  const runtime = createRuntime({ environment, importModule });
  const web = await startWeb({
    client,
    runtime,
    cwd,
    port,
    version,
    environment,
    database,
    disk: nodeDisk,
    stamp: systemStamp,
    assets: pageFolder(),
  });
  const interrupted = new Promise<void>((resolve) => onInterrupt(resolve));
  let removeFile = async (): Promise<void> => undefined;
  try {
    const address = web.address();
    await write(`troupe web: ${address}\n`);
    printMessage("the address works once; press Enter for another one, Ctrl+C to stop");
    if (!given.has("no-open") && process.stdout.isTTY) {
      printMessage(
        "if your browser cannot read the file that leads it there (snap, flatpak), open the address yourself",
      );
      removeFile = await openBrowser(address, { home: runtime.home, disk: nodeDisk, environment });
    }
    const stopReading = onEnter(() => void write(`troupe web: ${web.address()}\n`));
    await interrupted;
    stopReading();
  } finally {
    await removeFile();
    await web.close();
  }
  return exitCodes.done;
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
