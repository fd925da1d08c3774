// Two workers on a private Postgres server: submits work for two tenants, prints the answers and the state of the
// cluster, and removes everything. `--keep` opens the dashboard and waits for Ctrl+C first. No key, no network.
import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";

const troupe = fileURLToPath(new URL("../../bin/troupe.js", import.meta.url));
const WAIT_MS = 60_000;

const stopped = new AbortController();
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => stopped.abort());

/** What is undone at the end, newest first. */
const cleanups = [];

async function main() {
  const programs = postgresPrograms();
  for (const name of ["pg", "@dbos-inc/dbos-sdk"]) requirePackage(name);
  const folder = mkdtempSync(join(tmpdir(), "troupe-cluster-"));
  cleanups.push(() => rmSync(folder, { recursive: true, force: true }));
  chmodSync(folder, 0o711); // the server may run as another user
  const repository = await createRepository(join(folder, "shop"));
  const url = await startPostgres(programs, join(folder, "postgres"));
  console.log(`Postgres runs at ${url}\n`);

  const environment = { ...process.env, TROUPE_DATABASE_URL: url, TROUPE_NO_DISCOVERY: "1" };
  const worker = { args: ["worker", "--lease", "5", "--add-dir", repository], ready: "takes jobs", environment };
  await Promise.all(["one", "two"].map((name) => start(join(folder, name), worker)));

  // The client has a state folder of its own, as another machine would.
  const client = { cwd: folder, env: { ...environment, TROUPE_HOME: join(folder, "client") } };
  const submit = ["submit", "--wait", "--model", "understudy", "--repo", repository];
  await Promise.all([
    command([...submit, "--tenant", "acme", "-p", "Where is `total` defined?"], client),
    command([...submit, "--tenant", "globex", "-p", "Where is `discount` used?"], client),
  ]);
  await command(["cluster", "status"], client);
  await command(["sessions", "list"], client);

  if (!process.argv.includes("--keep")) return;
  await start(join(folder, "client"), { args: ["web", "--no-open"], ready: "Ctrl+C", environment });
  console.log(`\nTry it in another terminal; end it here with Ctrl+C:\n\n  export TROUPE_DATABASE_URL=${url}`);
  console.log(`  node ${troupe} ${submit.join(" ")} -p "Where is \`total\` used?"`);
  console.log(`  node ${troupe} cluster status\n`);
  await new Promise((resolve) => {
    const timer = setInterval(() => undefined, 60_000); // keeps the process alive
    stopped.signal.addEventListener("abort", () => resolve(clearInterval(timer)), { once: true });
  });
}

/** Runs troupe and prints the command with what it prints. */
async function command(args, { cwd, env }) {
  const text = args.map((arg) => (/[^\w./-]/.test(arg) ? JSON.stringify(arg) : arg)).join(" ");
  const output = await run(process.execPath, [troupe, ...args], { cwd, env });
  console.log(`$ troupe ${text}\n${output}`);
}

/** Starts troupe with this state folder, and waits until it says the words in `ready`. */
async function start(home, { args, ready, environment }) {
  mkdirSync(home, { recursive: true, mode: 0o700 });
  const child = spawn(process.execPath, [troupe, ...args], {
    cwd: home,
    env: { ...environment, TROUPE_HOME: home },
    detached: true, // Ctrl+C reaches only this program, which then lets the worker finish its sessions
    stdio: ["ignore", "pipe", "pipe"],
  });
  const ended = once(child, "exit");
  cleanups.push(async () => {
    child.kill("SIGTERM");
    const timer = setTimeout(() => child.kill("SIGKILL"), WAIT_MS);
    await ended;
    clearTimeout(timer);
  });
  let said = "";
  await new Promise((resolve, reject) => {
    const fail = (reason) => reject(new Error(`troupe ${args[0]} did not start: ${reason}\n${said}`));
    const timer = setTimeout(() => fail(`it said nothing for ${WAIT_MS / 1000} s`), WAIT_MS);
    const hear = (text) => {
      said += text;
      process.stdout.write(text);
      if (said.includes(ready)) resolve(clearTimeout(timer));
    };
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", hear);
    child.once("exit", () => fail(clearTimeout(timer) ?? "it ended"));
    stopped.signal.addEventListener("abort", () => fail(clearTimeout(timer) ?? "stopped"), { once: true });
  });
}

/** Creates and starts a server on a free port of the loopback. Returns its address. */
async function startPostgres({ bin, user }, folder) {
  const data = join(folder, "data");
  mkdirSync(data, { recursive: true, mode: 0o700 });
  if (user) for (const path of [folder, data]) chownSync(path, user.uid, user.gid);
  const options = { cwd: folder, ...user };
  await run(
    join(bin, "initdb"),
    ["-D", data, "-A", "trust", "-U", "troupe", "-E", "UTF8", "--locale=C", "--no-sync"],
    options,
  );
  const port = await freePort();
  const settings = `listen_addresses = '127.0.0.1'\nport = ${port}\nunix_socket_directories = ''\n`;
  writeFileSync(join(data, "postgresql.auto.conf"), settings);
  const control = [join(bin, "pg_ctl"), "-D", data, "-w", "-t", String(WAIT_MS / 1000)];
  // Ctrl+C does not interrupt it: half a start could not be stopped.
  const whole = { ...options, detached: true, isWhole: true };
  stopped.signal.throwIfAborted();
  await run(control[0], [...control.slice(1), "-l", join(folder, "log"), "start"], whole);
  cleanups.push(() => run(control[0], [...control.slice(1), "-m", "fast", "stop"], whole));
  return `postgres://troupe@127.0.0.1:${port}/postgres`;
}

/** Creates a git repository to work on. Returns its folder. */
async function createRepository(folder) {
  mkdirSync(folder);
  writeFileSync(
    join(folder, "total.js"),
    "export function total(prices) {\n  return prices.reduce((a, b) => a + b, 0);\n}\n",
  );
  writeFileSync(
    join(folder, "shop.js"),
    'import { total } from "./total.js";\nconst discount = 0.9;\nconsole.log(total([3, 4]) * discount);\n',
  );
  const git = (...args) =>
    run("git", ["-C", folder, "-c", "user.name=shop", "-c", "user.email=shop@localhost", ...args], {});
  await git("init", "--quiet");
  await git("add", ".");
  await git("commit", "--quiet", "--message", "Add a shop");
  return folder;
}

/** Finds the server's programs. As root it also finds the user that runs them: the server refuses to run as root. */
function postgresPrograms() {
  const debian = "/usr/lib/postgresql";
  const versions = existsSync(debian) ? readdirSync(debian).sort((a, b) => Number(b) - Number(a)) : [];
  const homebrew = ["/opt/homebrew/bin", "/usr/local/bin"];
  const folders = [...versions.map((version) => join(debian, version, "bin")), ...pathFolders(), ...homebrew];
  const bin = folders.find((folder) => existsSync(join(folder, "initdb")) && existsSync(join(folder, "pg_ctl")));
  if (bin === undefined) {
    throw new Missing(
      "There is no Postgres server (initdb and pg_ctl). Debian: apt install postgresql. macOS: brew install postgresql.",
    );
  }
  return { bin, user: process.getuid?.() === 0 ? postgresUser() : undefined };
}

const pathFolders = () => (process.env.PATH ?? "").split(delimiter).filter((folder) => folder !== "");

function postgresUser() {
  const passwd = existsSync("/etc/passwd") ? readFileSync("/etc/passwd", "utf8") : "";
  const [, uid, gid] = /^postgres:[^:]*:(\d+):(\d+):/m.exec(passwd) ?? [];
  if (uid === undefined)
    throw new Missing("Postgres does not run as root, and there is no user postgres. Run this as another user.");
  return { uid: Number(uid), gid: Number(gid) };
}

function requirePackage(name) {
  try {
    import.meta.resolve(name);
  } catch {
    throw new Missing(`The package ${name} is not installed. Run: npm install ${name}`);
  }
}

/** Something that has to be installed first. */
class Missing extends Error {}

/** Runs a program to its end. Returns what it printed; throws with it unless the program succeeds. */
async function run(program, args, { isWhole = false, ...options }) {
  const signal = isWhole ? {} : { signal: stopped.signal };
  const child = spawn(program, args, { ...options, ...signal, stdio: ["ignore", "pipe", "pipe"], timeout: WAIT_MS });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text) => {
      output += text;
    });
  }
  let failure;
  child.once("error", (error) => {
    failure = error;
  });
  const code = await new Promise((resolve) => child.once("close", resolve));
  if (failure !== undefined || code !== 0)
    throw new Error(`${program} ${args.join(" ")} failed:\n${output}`, { cause: failure });
  return output;
}

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

try {
  await main();
} catch (error) {
  process.exitCode = stopped.signal.aborted ? 130 : error instanceof Missing ? 2 : 1;
  if (!stopped.signal.aborted) console.error(error instanceof Missing ? error.message : error);
}
for (const cleanup of cleanups.reverse()) {
  try {
    await cleanup();
  } catch (error) {
    process.exitCode ||= 1;
    console.error(error);
  }
}
if (cleanups.length > 0) console.log("Stopped the workers and the server, and removed their folder.");
