import { existsSync, realpathSync } from "node:fs";
import { lstat, mkdir, stat, symlink } from "node:fs/promises";
import { join } from "node:path";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { changeSettings, editSettings, type SettingsObject } from "../../src/catalog/settings/settings-change.ts";
import { parseJsonc } from "../../src/catalog/settings/settings-jsonc.ts";
import type { Json } from "../../src/lib/json.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";

const BEFORE = `// my settings
{
  "model": "a", // the good one
  "unknown": { "kept": true },
  // where I read
  "allowedUrls": [
    // the first
    "https://one.example",
    "https://two.example" // the second
  ],
  "disabledMcpServers": ["x"]
}
`;

const append = (name: string, value: string) => (current: SettingsObject) => ({
  ...current,
  [name]: [...((current[name] as string[]) ?? []), value],
});

describe("changing the user's settings", () => {
  it("changing the user's settings keeps comments, order and unknown names", async () => {
    await using place = await tempFolder({ "settings.json": BEFORE });
    const path = place.at("settings.json");
    await changeSettings(path, append("allowedUrls", "https://three.example"));
    await changeSettings(path, append("disabledMcpServers", "y"));
    await changeSettings(path, ({ model: _, ...rest }) => ({ ...rest, stream: false, sandbox: { mode: "auto" } }));
    expect(await place.read("settings.json")).toBe(`// my settings
{
  "unknown": { "kept": true },
  // where I read
  "allowedUrls": [
    // the first
    "https://one.example",
    "https://two.example",
    "https://three.example" // the second
  ],
  "disabledMcpServers": ["x", "y"],
  "stream": false,
  "sandbox": {
    "mode": "auto"
  }
}
`);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect(Object.keys(await place.tree())).toEqual(["settings.json"]);
  });

  it("changing the user's settings creates the file and its folder if missing", async () => {
    await using place = await tempFolder();
    await changeSettings(place.at("home/settings.json"), append("allowedUrls", "https://x.example"));
    expect(await place.read("home/settings.json")).toBe('{\n  "allowedUrls": [\n    "https://x.example"\n  ]\n}\n');
    expect((await stat(place.at("home"))).mode & 0o777).toBe(0o700);
  });

  it("changing the user's settings does not touch a file that is invalid or would become so", async () => {
    await using place = await tempFolder({ "settings.json": '{\n "model": 5\n}', "other.json": '{"model": "a"}' });
    const change = append("allowedUrls", "x");
    await expect(changeSettings(place.at("settings.json"), change)).rejects.toThrow("settings.json:2: model: ");
    await expect(changeSettings(place.at("other.json"), () => ({ model: 7 }))).rejects.toThrow("model: ");
    expect(await place.tree()).toEqual({ "settings.json": '{\n "model": 5\n}', "other.json": '{"model": "a"}' });
  });

  it("changing the user's settings changes the target of a link and keeps the link", async () => {
    await using place = await tempFolder({ "dotfiles/settings.json": "{}" });
    await mkdir(place.at("home"));
    await symlink(place.at("dotfiles/settings.json"), place.at("home/settings.json"));
    await changeSettings(place.at("home/settings.json"), () => ({ model: "a" }));
    expect((await lstat(place.at("home/settings.json"))).isSymbolicLink()).toBe(true);
    expect(await place.read("dotfiles/settings.json")).toContain('"model": "a"');
  });

  it("changing the user's settings refuses a file that a link leads out of its folder", async () => {
    await using place = await tempFolder({ "home/settings.json": "{}", "repo/inner.json": "{}" });
    const below = realpathSync(place.at("repo"));
    await mkdir(join(below, ".troupe"));
    await symlink(place.at("home/settings.json"), join(below, ".troupe/settings.json"));
    await symlink("../inner.json", join(below, ".troupe/settings.local.json"));
    await symlink(place.at("home"), join(below, "folder"));
    const change = (path: string) => changeSettings(join(below, path), () => ({ model: "a" }), { below });
    await change(".troupe/settings.local.json");
    await change("new/settings.json");
    for (const path of [".troupe/settings.json", "folder/settings.json", "folder/missing.json"])
      await expect(change(path)).rejects.toThrow(`${join(below, path)} leads outside ${below} and was not changed.`);
    expect(await place.read("home/settings.json")).toBe("{}");
    expect(existsSync(place.at("home/missing.json"))).toBe(false);
    expect(await place.read("repo/inner.json")).toContain('"model": "a"');
    expect(await place.read("repo/new/settings.json")).toContain('"model": "a"');
  });

  it("changing the user's settings concurrently loses no change", async () => {
    await using place = await tempFolder({ "settings.json": BEFORE });
    const names = Array.from({ length: 20 }, (_, index) => `server-${index}`);
    await Promise.all(
      names.map((name) => changeSettings(place.at("settings.json"), append("disabledMcpServers", name))),
    );
    const { disabledMcpServers } = parseJsonc(await place.read("settings.json")).value as SettingsObject;
    expect((disabledMcpServers as string[]).sort()).toEqual(["x", ...names].sort());
    expect(await place.read("settings.json")).toContain("// the second");
  });

  it("changing the user's settings writes the requested values whatever the file contained", async () => {
    const name = fc.constantFrom("a", "b", "c", "d");
    const { value } = fc.letrec<{ value: Json; object: SettingsObject }>((tie) => ({
      value: fc.oneof(
        { maxDepth: 3 },
        fc.constantFrom(1, "x", null, true),
        fc.array(tie("value"), { maxLength: 3 }),
        tie("object"),
      ),
      object: fc.dictionary(name, tie("value"), { maxKeys: 4, noNullPrototype: true }),
    }));
    const object = fc.dictionary(name, value, { maxKeys: 4, noNullPrototype: true });
    const style = fc.constantFrom(undefined, 2, "\t");
    await fc.assert(
      fc.property(object, object, style, fc.boolean(), (before, after, indent, isCommented) => {
        const plain = JSON.stringify(before, null, indent);
        const text = isCommented
          ? plain.replace(/,/g, "/* , */, // }\n").replace(/([^[{\s])(\s*[}\]])/g, "$1,$2")
          : plain;
        expect(parseJsonc(text).value).toEqual(before);
        expect(parseJsonc(editSettings("file", text, after)).value).toEqual(after);
      }),
      { numRuns: 150 },
    );
  });
});
