/** After kill -9 of the process that runs the shells, no placeholder and nothing dangerous stays in the workspace. */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { PROTECTED_FILES, PROTECTED_FOLDERS, PROTECTED_PARTS } from "../../src/lib/protected-names.ts";
import { type TempFolder, tempFolder } from "../../src/testing/temp-folder.ts";
import { createSandbox } from "../../src/tools/shell/sandbox/sandbox.ts";
import { hasBubblewrap } from "./bubblewrap.ts";
import { hostFolder } from "./host.ts";
import { PlantedWorkspace, plantingScript } from "./planted-repositories.ts";

const works = await hasBubblewrap();
const PLACEHOLDERS = [
  ...[...PROTECTED_FOLDERS, ...PROTECTED_FILES, ...Object.keys(PROTECTED_PARTS)],
  ...["commondir", "config.worktree", "modules"].map((name) => `.git/${name}`),
];
/** The watchdog needs about a second; the rest is for a busy machine. */
const within = { timeout: 60_000, interval: 100 };

describe.runIf(works)("kill -9 of the process that runs the shells", () => {
  let program: TempFolder;
  beforeAll(async () => {
    program = await hostFolder();
  });
  afterAll(() => program.remove());

  /** Runs a command in the workspace and returns its host when the command waits for the file "go". */
  async function hosted(base: string, command: string, { isAwaited = true } = {}): Promise<ChildProcess> {
    mkdirSync(join(base, "state"));
    const waiting = `touch waiting; until [ -e go ]; do sleep 0.05; done; ${command}\ntouch planted; sleep 600`;
    const words = [process.execPath, program.at("host.mjs"), base, "1", "required", "x", waiting];
    const [file = "", ...args] = isAwaited ? words : ["/bin/sh", "-c", '"$@" & exec sleep 600', "sh", ...words];
    const host = spawn(file, args, { stdio: ["ignore", "ignore", "inherit"] });
    await expect.poll(() => existsSync(join(base, "workspace/waiting")), within).toBe(true);
    return host;
  }

  const placeholders = (planted: PlantedWorkspace): string[] =>
    PLACEHOLDERS.filter((name) => existsSync(join(planted.path, name)));

  it("a killed process leaves no placeholders, and a commit with .gitmodules can be checked out", async () => {
    await using folder = await tempFolder();
    const planted = new PlantedWorkspace(folder.path);
    planted.git(["checkout", "-qb", "bring"]);
    writeFileSync(join(planted.path, ".gitmodules"), "");
    planted.git(["add", ".gitmodules"]);
    planted.git(["commit", "-qm", "modules"]);
    planted.git(["checkout", "-q", "-"]);
    const host = await hosted(folder.path, "");
    expect(placeholders(planted)).toEqual(PLACEHOLDERS);
    host.kill("SIGKILL");
    await expect.poll(() => placeholders(planted), within).toEqual([]);
    planted.git(["checkout", "-q", "bring"]);
    expect(existsSync(join(planted.path, ".gitmodules"))).toBe(true);
  });

  it("a killed process leaves no placeholders in a container without an init", async () => {
    await using folder = await tempFolder();
    const planted = new PlantedWorkspace(folder.path);
    const parent = await hosted(folder.path, "", { isAwaited: false });
    expect(placeholders(planted)).toEqual(PLACEHOLDERS);
    const [host = ""] = readFileSync(`/proc/${parent.pid}/task/${parent.pid}/children`, "utf8").split(" ");
    process.kill(Number(host), "SIGKILL");
    try {
      await expect.poll(() => placeholders(planted), within).toEqual([]);
      expect(readFileSync(`/proc/${host}/stat`, "utf8")).toContain(") Z ");
    } finally {
      parent.kill("SIGKILL");
    }
  });

  it("a killed process leaves no planted files, even when the command is just being checked", async () => {
    await using folder = await tempFolder();
    const planted = new PlantedWorkspace(folder.path);
    for (let index = 0; index < 8_000; index++)
      mkdirSync(join(planted.path, `many/${index % 100}/${index}`), { recursive: true });
    mkdirSync(folder.at("state"));
    const command = "git init -q lib; git -C lib config core.fsmonitor x; touch planted";
    const host = spawn(process.execPath, [program.at("host.mjs"), folder.path, "1", "required", "x", command], {
      stdio: "ignore",
    });
    await expect.poll(() => existsSync(join(planted.path, "planted")), { interval: 1 }).toBe(true);
    await delay(60); // the command ends, the search of so many folders does not
    host.kill("SIGKILL");
    await expect.poll(() => existsSync(join(planted.path, "lib/.git/config")), within).toBe(false);
  });

  it("a killed process leaves no planted files, and the next start reports them", async () => {
    await using folder = await tempFolder();
    const planted = new PlantedWorkspace(folder.path);
    mkdirSync(join(planted.path, "conf"));
    planted.git(["init", "-q", "two  words * 'and' \"more\""]);
    symlinkSync("conf", join(planted.path, ".vscode"));
    const link =
      "rm .vscode; mkdir .vscode; echo x > .vscode/tasks.json; mkdir -p below/.idea; echo x > below/.idea/x.xml; ln -sf /etc/none .git/COMMIT_EDITMSG";
    const host = await hosted(folder.path, `(${plantingScript(planted.canaries)}); ${link}`);
    // Stopped, so that it cannot tidy up itself before it is killed.
    host.kill("SIGSTOP");
    writeFileSync(join(planted.path, "go"), "");
    await expect.poll(() => existsSync(join(planted.path, "planted")), within).toBe(true);
    host.kill("SIGKILL");
    const reports = (): string[] =>
      readdirSync(folder.at("state/sandbox")).filter((name) => /^report-.*\.txt$/.test(name));
    await expect.poll(reports, within).toHaveLength(1);
    expect(placeholders(planted)).toEqual([]);
    expect(existsSync(join(planted.path, "below/.idea"))).toBe(false);
    expect(readdirSync(join(planted.path, ".git"))).not.toContain("COMMIT_EDITMSG");
    expect(await planted.use()).toEqual([]);

    const warnings: string[] = [];
    const sandbox = createSandbox({ mode: "required", stateRoot: folder.at("state") });
    const prepared = await sandbox.prepare({
      workspace: [planted.path],
      cwd: planted.path,
      ownTerminal: false,
      detached: false,
      onWarning: (message) => void warnings.push(message),
    });
    if (prepared.kind === "sandboxed") await prepared.release();
    await sandbox.close();
    expect(warnings.join("\n")).toMatch(/Moved .*fsmonitor\/\.git\/config to .*Moved .*workspace\/\.vscode to /s);
    expect(reports()).toEqual([]);
  });
});
