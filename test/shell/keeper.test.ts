/** What runs beside a sandboxed command, outside the sandbox, takes nothing from where the command can write. */
import { existsSync, readdirSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { hasBubblewrap } from "./bubblewrap.ts";
import { shellStage } from "./stage.ts";

const works = await hasBubblewrap();

describe.runIf(works)("the keeper of a detached command", () => {
  it("the keeper of a detached command runs no program of the workspace, also when PATH leads there", async () => {
    const environment: Record<string, string> = { HOME: "/nonexistent" };
    await using stage = await shellStage({ sandboxed: {}, environment });
    environment.PATH = `${stage.workspace.at("bin")}:/usr/bin:/bin`;
    const proof = stage.state.at("proof");
    await stage.run(`mkdir bin; for name in bash cat head rm sleep; do
      printf '#!/bin/sh\\necho %s >> ${proof}\\nexec /bin/%s "$@"\\n' $name $name > bin/$name; done; /bin/chmod +x bin/*`);
    const path = await stage.run("echo $PATH > path; touch done", { mode: "detached", shellId: "d" });
    expect(path.state).toBe("detached");
    await expect.poll(() => stage.shells.list().find(({ shellId }) => shellId === "d")?.state).toBe("exited");
    expect(existsSync(stage.workspace.at("done"))).toBe(true);
    expect((await stage.run("/bin/cat path")).output).toContain(stage.workspace.at("bin"));
    expect(existsSync(proof)).toBe(false);
  });

  it("the keeper of a detached command moves aside what the command plants while it runs", async () => {
    const warnings: string[] = [];
    await using stage = await shellStage({ sandboxed: {}, onWarning: (message) => void warnings.push(message) });
    const command = "git init -q n; git -C n config core.fsmonitor false; sleep 60";
    await stage.run(command, { mode: "detached", shellId: "d" });
    await expect.poll(() => warnings.join("\n")).toMatch(/Moved .*n\/\.git\/config to /);
    expect(readdirSync(stage.workspace.at("n/.git"))).not.toContain("config");
    await stage.shells.stop("d");
  });
});
