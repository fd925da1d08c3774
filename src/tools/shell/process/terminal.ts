/** Runs a command in its own terminal, through the optional package. */
import type * as pty from "@lydell/node-pty";

interface Terminal {
  readonly pid: number;
  write(text: string): void;
  pause(): void;
  resume(): void;
  readonly exited: Promise<number>;
}

interface TerminalRequest {
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly environment: Readonly<Record<string, string>>;
  onBytes(bytes: Buffer): void;
}

const COLUMNS = 120;
const ROWS = 40;
const SIGNAL_BASE = 128;

export async function hasTerminals(): Promise<boolean> {
  return (await loadPackage()) !== undefined;
}

export async function openTerminal(request: TerminalRequest): Promise<Terminal> {
  const package_ = await import("@lydell/node-pty");
  const [file = "", ...rest] = request.argv;
  const terminal = package_.spawn(file, rest, {
    cwd: request.cwd,
    env: { ...request.environment, TERM: "dumb" },
    cols: COLUMNS,
    rows: ROWS,
    name: "dumb",
    encoding: null,
  });
  // Without an encoding the package returns bytes, contrary to its types.
  terminal.onData((bytes: string | Buffer) => request.onBytes(Buffer.from(bytes)));
  const exited = new Promise<number>((resolve) => {
    terminal.onExit(({ exitCode, signal }) => resolve(signal ? SIGNAL_BASE + signal : exitCode));
  });
  return {
    pid: terminal.pid,
    exited,
    write: (text) => terminal.write(text),
    pause: () => terminal.pause(),
    resume: () => terminal.resume(),
  };
}

async function loadPackage(): Promise<typeof pty | undefined> {
  try {
    return await import("@lydell/node-pty");
  } catch {
    return undefined;
  }
}
