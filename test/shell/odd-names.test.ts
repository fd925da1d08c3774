/** Names that are not valid UTF-8: no path can name them, so nothing can be mounted there. */
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { describe, expect, it } from "vitest";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { hasBubblewrap } from "./bubblewrap.ts";
import { shellStage } from "./stage.ts";

const works = await hasBubblewrap();
const CANARY = "canary-5d1e";
const REFUSED = /leads to a name that is not valid UTF-8.*Nothing was run/s;

/** A name with a byte that is not text. */
const odd = (folder: string, name = "x"): Buffer =>
  Buffer.concat([Buffer.from(`${folder}/${name}`), Buffer.from([255])]);

describe.runIf(works)("a command that does not run", () => {
  it.each([".vscode", "sub/.envrc", "sub/.claude/hooks", ".git/hooks", ".git/modules"])(
    "a command is refused when the link %s leads to a folder whose name is not valid UTF-8",
    async (name) => {
      await using stage = await shellStage({ sandboxed: {} });
      const link = stage.workspace.at(name);
      mkdirSync(dirname(link), { recursive: true });
      mkdirSync(odd(stage.workspace.path));
      symlinkSync(odd(stage.workspace.path), link);
      await expect(stage.run("echo ran")).rejects.toThrow(REFUSED);
      // The text of such a name can be the name of another folder.
      mkdirSync(stage.workspace.at("x\ufffd"));
      await expect(stage.run("echo ran")).rejects.toThrow(REFUSED);
    },
  );

  it.each(["inside", "outside"])(
    "a command is refused when a link named .env leads to a file with such a name %s the workspace",
    async (place) => {
      await using elsewhere = await tempFolder();
      await using stage = await shellStage({ sandboxed: {} });
      const file = odd(place === "inside" ? stage.workspace.path : elsewhere.path);
      writeFileSync(file, CANARY);
      symlinkSync(file, stage.workspace.at(".env"));
      await expect(stage.run("cat .env x*")).rejects.toThrow(REFUSED);
      await using open = await shellStage({ sandboxed: { environmentFiles: true } });
      symlinkSync(file, open.workspace.at(".env"));
      expect((await open.run("echo fine")).output).toBe("fine\n");
    },
  );

  it("a command is refused when a .git file leads to a repository with such a name among packages", async () => {
    await using stage = await shellStage({ sandboxed: {} });
    await stage.workspace.files({ "node_modules/a": "", "sub/a": "" });
    const folder = odd(stage.workspace.at("node_modules"));
    mkdirSync(folder);
    writeFileSync(stage.workspace.at("sub/.git"), Buffer.concat([Buffer.from("gitdir: "), folder]));
    await expect(stage.run("echo ran")).rejects.toThrow(REFUSED);
    symlinkSync(folder, stage.workspace.at("node_modules/way"));
    writeFileSync(stage.workspace.at("sub/.git"), "gitdir: ../node_modules/way\n");
    await expect(stage.run("echo ran")).rejects.toThrow(REFUSED);
  });

  it("a command is refused when credentials in the home folder are a link to a folder with such a name", async () => {
    await using home = await tempFolder();
    await using elsewhere = await tempFolder();
    mkdirSync(odd(elsewhere.path));
    writeFileSync(Buffer.concat([odd(elsewhere.path), Buffer.from("/id")]), CANARY);
    symlinkSync(odd(elsewhere.path), home.at(".ssh"));
    await using stage = await shellStage({ sandboxed: { home: home.path } });
    await expect(stage.run(`cat '${home.path}'/.ssh/id`)).rejects.toThrow(REFUSED);
  });
});

describe.runIf(works)("a command that runs", () => {
  it("a command runs when a protected link leads to a folder with an invalid name outside the workspace", async () => {
    await using elsewhere = await tempFolder();
    mkdirSync(odd(elsewhere.path));
    const warnings: string[] = [];
    await using stage = await shellStage({ sandboxed: {}, onWarning: (message) => void warnings.push(message) });
    symlinkSync(odd(elsewhere.path), stage.workspace.at(".vscode"));
    expect((await stage.run("touch .vscode/new 2>/dev/null || echo fine")).output).toBe("fine\n");
    expect(warnings).toEqual([]);
  });

  it("a command runs when a submodule's git folder has an invalid name, which stays read-only", async () => {
    await using stage = await shellStage({ sandboxed: {} });
    await stage.workspace.files({ ".git/HEAD": "ref: refs/heads/main\n", ".git/modules/a/HEAD": "" });
    mkdirSync(odd(stage.workspace.at(".git/modules")));
    writeFileSync(Buffer.concat([odd(stage.workspace.at(".git/modules")), Buffer.from("/HEAD")]), "");
    const { output } = await stage.run(
      "ls .git/modules | wc -l; touch .git/modules/x*/config 2>/dev/null || echo fine",
    );
    expect(output).toBe("2\nfine\n");
  });
});
