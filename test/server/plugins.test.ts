import { chmod, mkdir, readdir, rm, stat, symlink, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import type { CopilotSession } from "@github/copilot-sdk";
import { describe, expect, it } from "vitest";
import { shared } from "../support/second-look.ts";
import { type ServerStage, serverStage } from "./stage.ts";

let stage: ServerStage;
shared(
  async () => {
    stage = await serverStage();
    await stage.client.start();
  },
  () => stage[Symbol.asyncDispose](),
);

async function put(path: string, content: string | object): Promise<void> {
  await mkdir(dirname(stage.folder.at(path)), { recursive: true });
  await writeFile(stage.folder.at(path), typeof content === "string" ? content : JSON.stringify(content));
}
const skill = (name: string): string => `---\nname: ${name}\ndescription: How to ${name}\n---\nSlowly.\n`;

async function market(version: string): Promise<string> {
  const plugins = [
    { name: "kitchen", source: "./kitchen", description: "Cooks", version },
    { name: "far", source: { source: "github", repo: "someone/far" } },
    { name: "out", source: "../../outside" },
  ];
  await put("market/marketplace.json", { name: "village", owner: { name: "t" }, plugins });
  await put("market/kitchen/SKILL.md", skill("stew"));
  await put("market/kitchen/skills/bake/SKILL.md", skill("bake"));
  await put("outside/SKILL.md", skill("steal"));
  return stage.folder.at("market");
}
const skillNames = async (): Promise<string[]> => {
  const { skills } = await stage.client.rpc.skills.discover({ projectPaths: [stage.folder.at("work")] });
  return skills.filter(({ source }) => source === "plugin").map(({ name }) => name);
};

describe("plugins that are installed over the contract", () => {
  it("plugins of a local marketplace are installed, switched, updated and removed", async () => {
    const { plugins } = stage.client.rpc;
    const source = await market("1.0.0");
    expect(await plugins.marketplaces.add({ source })).toEqual({ name: "village" });
    const listed = (await plugins.marketplaces.list()).marketplaces;
    expect(listed.map(({ name, isDefault }) => `${name} ${isDefault}`)).toEqual(["own true", "village false"]);
    const offered = await plugins.marketplaces.browse({ name: "village" });
    expect(offered.plugins[0]).toEqual({ name: "kitchen", description: "Cooks" });
    expect(await plugins.marketplaces.refresh({ name: "village" })).toEqual({
      results: [{ name: "village", success: true }],
    });

    const kitchen = { name: "kitchen", marketplace: "village", version: "1.0.0", enabled: true };
    const spec = "kitchen@village";
    expect(await plugins.install({ source: spec })).toEqual({ plugin: kitchen, skillsInstalled: 2 });
    expect(await plugins.list()).toEqual({ plugins: [kitchen] });
    expect(await skillNames()).toEqual(expect.arrayContaining(["stew", "bake"]));
    await plugins.disable({ names: [spec] });
    expect(await plugins.list()).toEqual({ plugins: [{ ...kitchen, enabled: false }] });
    expect(await skillNames()).toEqual([]);

    await market("2.0.0");
    await rm(stage.folder.at("market/kitchen/skills"), { recursive: true });
    const versions = { previousVersion: "1.0.0", newVersion: "2.0.0" };
    expect(await plugins.update({ name: spec })).toEqual({ ...versions, skillsInstalled: 1 });
    expect((await plugins.list()).plugins[0]?.enabled).toBe(false); // an update switches nothing on
    await plugins.enable({ names: ["kitchen"] });
    expect(await skillNames()).toEqual(["stew"]);
    expect(await plugins.marketplaces.remove({ name: "village" })).toEqual({
      removed: false,
      dependentPlugins: ["kitchen"],
    });
    await rm(stage.folder.at("market"), { recursive: true });
    expect((await plugins.updateAll()).results).toMatchObject([{ name: "kitchen", success: false }]);
    expect(await skillNames()).toEqual(["stew"]); // what was installed does not need where it came from
    expect(await plugins.marketplaces.remove({ name: "village", force: true })).toMatchObject({ removed: true });
    expect(await plugins.list()).toEqual({ plugins: [] });
    expect(await skillNames()).toEqual([]);
  });

  it("plugins of a folder are installed with permission to run, and removed by their source", async () => {
    const { plugins } = stage.client.rpc;
    await put("tool/plugin.json", { name: "tool", version: "0.1.0" });
    await put("tool/run.sh", "echo hi\n");
    await put("tool/.git/config", "[core]\n");
    await chmod(stage.folder.at("tool/run.sh"), 0o755);
    const { plugin, deprecationWarning } = await plugins.install({ source: stage.folder.at("tool") });
    expect(plugin).toMatchObject({ name: "tool", marketplace: "", version: "0.1.0", enabled: true });
    expect(deprecationWarning).toMatch(/deprecated/);
    const installed = stage.folder.at(`home/installed-plugins/folder-${plugin.directSourceId}/tool`);
    expect((await readdir(installed)).sort()).toEqual(["plugin.json", "run.sh"]);
    expect((await stat(`${installed}/run.sh`)).mode & 0o777).toBe(0o700);
    await plugins.uninstall({ name: "tool", directSourceId: plugin.directSourceId ?? null });
    expect(await plugins.list()).toEqual({ plugins: [] });
    await expect(stat(installed)).rejects.toThrow(/ENOENT/);
  });

  it("plugins that are missing, lead elsewhere or are not plugins are refused", async () => {
    const { plugins } = stage.client.rpc;
    await plugins.marketplaces.add({ source: await market("1.0.0") });
    await put("none/readme.txt", "nothing\n");
    await put("linked/SKILL.md", skill("link"));
    await symlink("/etc/passwd", stage.folder.at("linked/secret"));
    for (const [source, why] of [
      ["far@village", /is not in the folder/],
      ["out@village", /is not in the folder/],
      ["nobody@village", /has no plugin nobody/],
      ["kitchen@nowhere", /no marketplace nowhere/],
      ["someone/repository", /not a folder on this machine/],
      ["https://github.com/someone/repository", /not a folder on this machine/],
      [stage.folder.at("none"), /neither a plugin.json nor any part/],
      [stage.folder.at("linked"), /is a link/],
    ] as const) {
      await expect(plugins.install({ source })).rejects.toThrow(why);
    }
    await expect(plugins.marketplaces.add({ source: "someone/market" })).rejects.toThrow(
      /not a folder on this machine/,
    );
    await expect(plugins.uninstall({ name: "kitchen" })).rejects.toThrow(/No plugin kitchen is installed/);
    expect(await plugins.list()).toEqual({ plugins: [] });
    expect(await readdir(stage.folder.at("home/plugin-staging"))).toEqual([]);
  });
});

describe("plugins that a program brings", () => {
  it("plugins of a program are in all sessions opened from then on", async () => {
    await put("bundled/skills/knit/SKILL.md", skill("knit"));
    await put("fetched/skills/weave/SKILL.md", skill("weave"));
    const client = stage.newClient({ builtinPluginDirectories: [stage.folder.at("bundled")] });
    const skillsOf = async (session: CopilotSession): Promise<string[]> =>
      (await session.rpc.skills.list()).skills.filter(({ source }) => source === "plugin").map(({ name }) => name);
    const before = await client.createSession({});
    expect(await skillsOf(before)).toEqual(["knit"]);
    const fetched = { name: "fetched", marketplace: "", installed_at: new Date(0).toISOString(), enabled: true };
    const { setAdditionalPlugins } = client.rpc.sessions;
    await expect(setAdditionalPlugins({ plugins: [fetched] })).rejects.toThrow(/fetched has no folder on this machine/);
    await setAdditionalPlugins({ plugins: [{ ...fetched, cache_path: stage.folder.at("fetched") }] });
    const after = await client.createSession({});
    expect((await skillsOf(after)).sort()).toEqual(["knit", "weave"]);
    expect(await skillsOf(before)).toEqual(["knit"]);
    await setAdditionalPlugins({ plugins: [{ ...fetched, enabled: false }] });
    expect(await skillsOf(await client.createSession({}))).toEqual(["knit"]);
    const set = (paths: string[]) => Reflect.get(client, "connection").sendRequest("plugins.builtin.set", { paths });
    await expect(set(["relative"])).rejects.toThrow(/absolute path/);
    await set([]);
    expect(await skillsOf(await client.createSession({}))).toEqual([]);
  });
});
