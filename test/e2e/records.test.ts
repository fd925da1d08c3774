/** What a command leaves in the folder of its session, against the built program. */
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { hasBubblewrap } from "../shell/bubblewrap.ts";
import { SECRET } from "../support/hostile.ts";
import { script, troupe } from "../support/troupe.ts";

const works = await hasBubblewrap();
const ID = "11111111-2222-4333-8444-555555555555";
const call = (name: string, given: object): object => ({ call: { name, arguments: given } });
/** In a script, as a repository would bring it: what it does cannot be told from the command. */
function runs({ cwd }: Place, lines: string): object {
  writeFileSync(join(cwd, "a.sh"), `#!/bin/sh\n${lines}\necho the script ran\n`, { mode: 0o755 });
  return call("bash", { command: "./a.sh", description: "x" });
}

interface Place {
  readonly cwd: string;
  readonly home: string;
  readonly root: string;
  readonly session: string;
  readonly secret: string;
}

async function withProject(test: (place: Place) => Promise<void>): Promise<void> {
  await using folder = await tempFolder();
  const [cwd, home, secret] = [join(folder.path, "project"), join(folder.path, "home"), join(folder.path, "secret")];
  mkdirSync(cwd);
  writeFileSync(secret, SECRET);
  await test({ cwd, home, secret, root: folder.path, session: join(home, "session-state", ID) });
}

/** Runs the steps, and returns everything that was printed and stored. */
async function play({ cwd, home, root, session }: Place, steps: readonly object[], ...flags: string[]) {
  const model = script(root, [...steps, { say: "ok" }]);
  const args = ["-p", "go", "--model", model, "--session-id", ID, "--output-format", "json", ...flags];
  const { code, stdout, stderr } = await troupe(args, { cwd, home });
  const all = stdout + stderr + readFileSync(join(session, "events.jsonl"), "utf8");
  return { code, all, results: resultsIn(all) };
}

/** Of each call, in order: whether it succeeded, and what the model was told. */
function resultsIn(text: string): { success: boolean; told: string }[] {
  const done = text.split("\n").filter((line) => line.includes('"type":"tool.execution_complete"'));
  return [...new Map(done.map((line) => [JSON.parse(line).id, line])).values()].map((line) => {
    const { success, result, error } = JSON.parse(line).data;
    return { success, told: String(result?.content ?? error?.message) };
  });
}

const RECORD = '{"shellId":"ev","command":"x","pid":1,"started":"0","mark":"m"}';
/** A command that leaves the record of a detached command that has ended, with this as its log. */
const forging = (folder: string, log: string): string =>
  `mkdir -p ${folder}; cd ${folder} && printf %s '${RECORD}' > shell-detached-ev-1.pid; echo 0 > shell-detached-ev-1.exit; ${log}`;
const readBash = call("read_bash", { shellId: "ev", delay: 1 });
const stopBash = call("stop_bash", { shellId: "ev" });

describe.each(works ? ["files", "records"] : ["files"])(
  "a record of a detached command that a command forged in %s",
  (folder) => {
    it("a forged record of a detached command is ignored when its log is a link", () =>
      withProject(async (place) => {
        const forged = forging(join(place.session, folder), `ln -s ${place.secret} shell-detached-ev-1.log`);
        const steps = [runs(place, forged), readBash, stopBash];
        const { code, all, results } = await play(place, steps, "--allow-tool", "shell");
        expect(code).toBe(0);
        const missing = { success: false, told: expect.stringContaining("no shell with the shellId ev") };
        const ran = { success: true, told: expect.stringContaining("the script ran") };
        expect(results).toEqual([ran, missing, missing]);
        expect(all.includes(SECRET)).toBe(false);
      }));

    it("a forged record of a detached command does not stop the program when its log is a pipe", () =>
      withProject(async (place) => {
        const forged = forging(join(place.session, folder), "mkfifo shell-detached-ev-1.log");
        const { code, results } = await play(place, [runs(place, forged), readBash], "--allow-tool", "shell");
        expect(code).toBe(0);
        expect(results.map(({ success }) => success)).toEqual([true, false]);
      }));
  },
);

describe("the records of a session", () => {
  it("the records of a session can be read by file tools, and no tool can write them", () =>
    withProject(async (place) => {
      writeFileSync(join(place.cwd, "big.txt"), "0123456789\n".repeat(4_000));
      const records = join(place.session, "records");
      const output = join(records, "1-copilot-tool-output-view.txt");
      const { results } = await play(
        place,
        [
          call("view", { path: "big.txt" }),
          call("view", { path: output, view_range: [1, 2] }),
          call("create", { path: join(records, "shell-detached-ev-1.pid"), file_text: RECORD }),
          call("edit", { path: output, old_str: "0123456789\n0123456789", new_str: "forged" }),
          call("create", { path: join(place.session, "files", "notes.md"), file_text: "mine" }),
        ],
        "--allow-all-tools",
      );
      expect(results.map(({ success }) => success)).toEqual([true, true, false, false, true]);
      expect(readdirSync(records)).toEqual(["1-copilot-tool-output-view.txt"]);
      expect(readFileSync(output, "utf8")).not.toContain("forged");
    }));

  it("the records of a session that an older version wrote are ignored", () =>
    withProject(async (place) => {
      await play(place, []);
      const files = join(place.session, "files");
      mkdirSync(files, { recursive: true });
      writeFileSync(join(files, "shell-detached-ev-1.pid"), RECORD);
      writeFileSync(join(files, "shell-detached-ev-1.exit"), "0");
      symlinkSync(place.secret, join(files, "shell-detached-ev-1.log"));
      const { cwd, home, root } = place;
      const model = script(root, [runs(place, "true"), call("list_bash", {}), readBash, { say: "ok" }]);
      const again = await troupe(["-p", "go", "--model", model, "--resume", ID, "--allow-tool", "shell"], {
        cwd,
        home,
      });
      expect(again.code).toBe(0);
      const log = readFileSync(join(place.session, "events.jsonl"), "utf8");
      expect(resultsIn(log).at(-1)?.told).toContain("no shell with the shellId ev");
      expect(log.includes(SECRET)).toBe(false);
    }));
});

describe.runIf(works)("the token of a server", () => {
  it.each(["as it is", "behind a link", "in the workspace, behind a link"])(
    "the token of a server is hidden from commands when the state folder is %s",
    (how) =>
      withProject(async (place) => {
        const { cwd, root } = place;
        const real = how.startsWith("in the workspace") ? join(cwd, "state") : join(root, "real-home");
        const home = how === "as it is" ? real : join(root, "linked-home");
        mkdirSync(join(real, "server"), { recursive: true });
        if (home !== real) symlinkSync(real, home);
        writeFileSync(join(real, "server", "4321.token"), SECRET);
        const session = join(real, "session-state", ID);
        const look = `cat ${home}/server/4321.token ${real}/server/4321.token; find ${home}/ ${real}/ -name '*.token' | wc -l`;
        const steps = [runs(place, look)];
        const { all, results } = await play({ ...place, home, session }, steps, "--allow-tool", "shell");
        expect(existsSync(join(real, "server", "4321.token"))).toBe(true);
        expect(results).toMatchObject([{ success: true, told: expect.stringContaining("0\nthe script ran") }]);
        expect(all.includes(SECRET)).toBe(false);
      }),
  );
});
