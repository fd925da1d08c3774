import { readdirSync } from "node:fs";
import { expect, it } from "vitest";
import { temporaryName } from "../../src/lib/node/temporaries.ts";
import { tempFolder } from "../../src/testing/index.ts";
import { script, troupe } from "../support/troupe.ts";

/** As a process would name it that is gone now. */
const nameOfTheDead = (): string =>
  temporaryName().replace(`-${process.pid.toString(36)}_`, `-${(4_194_304).toString(36)}_`);

it.runIf(process.platform === "linux")(
  "temporary files of killed processes are removed when the session is resumed, even recent ones",
  async () => {
    await using folder = await tempFolder({ "work/sub/b.txt": "b" });
    const id = "7d1c1a52-3f57-4b37-9a7c-0d7c9b7f2e11";
    const create = { name: "create", arguments: { path: "sub/a.txt", file_text: "a" } };
    const model = script(folder.path, [{ call: create }, { say: "done" }]);
    const run = (...args: string[]) =>
      troupe(["--allow-all", ...args], { cwd: folder.at("work"), home: folder.at("home") });
    expect(await run("-p", "go", "--model", model, "--session-id", id)).toMatchObject({ code: 0 });
    const state = `home/session-state/${id}`;
    const dead = { pid: 4_194_304, started: "1", token: "t" };
    await folder.files({
      [`work/${nameOfTheDead()}`]: "",
      [`work/sub/${nameOfTheDead()}`]: "",
      [`${state}/workspace.yaml.77.abc123.tmp`]: "",
      [`${state}/lock.0b1d.tmp`]: JSON.stringify(dead),
      [`${state}/checkpoints/objects/00.77.abc123.tmp`]: "",
    });
    const left = (): string[] =>
      readdirSync(folder.path, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".tmp"));
    expect(left()).toHaveLength(5);
    const again = script(folder.path, [{ say: "done" }]);
    expect(await run("-p", "go on", "--model", again, "--resume", id)).toMatchObject({ code: 0 });
    expect(left()).toEqual([]);
  },
);
