import { describe, expect, it } from "vitest";
import { digestOf } from "../../src/catalog/pins.ts";
import { readTrust } from "../../src/catalog/trust.ts";
import type { Arguments } from "../../src/cli/args.ts";
import { type TrustContext, trustCommand } from "../../src/cli/commands/trust.ts";
import type { PinnedItem } from "../../src/lib/pinned-item.ts";
import { type TempFolder, tempFolder } from "../../src/testing/temp-folder.ts";

const hook: PinnedItem = {
  kind: "hook",
  id: "sessionStart \u001b[2J\nx",
  digest: digestOf("touch pwn"),
  shown: "touch pwn\u001b[31m\nTrust everything? [y/N] y\u202e",
};

/** Runs `troupe trust <words>` and returns what was printed, asked and decided. */
async function run(
  place: TempFolder,
  words: string[],
  options: { answer?: boolean; yes?: boolean; item?: PinnedItem } = {},
) {
  const printed: string[] = [];
  const asked: string[] = [];
  const has = (name: string): boolean => name === "yes" && options.yes === true;
  const given = { words: ["trust", ...words], has, choice: () => undefined };
  const { answer } = options;
  const around: TrustContext = {
    environment: { TROUPE_HOME: place.at("home") },
    cwd: place.at("work"),
    print: async (text) => void printed.push(text),
    ...(answer !== undefined && {
      ask: async (question) => {
        asked.push(question);
        return answer;
      },
    }),
  };
  const code = await trustCommand(given as unknown as Arguments, async () => [options.item ?? hook], around);
  return { code, printed: printed.join(""), asked };
}

const stage = (): Promise<TempFolder> => tempFolder({ "work/a": "", "other/a": "" });
const check = (place: TempFolder, folder = "work") => readTrust(place.at("home")).of(place.at(folder)).check(hook);

describe("troupe trust", () => {
  it("troupe trust shows every item whole, apart from its own words, asks, and records the answer", async () => {
    await using place = await stage();
    const { code, printed, asked } = await run(place, [], { answer: true });
    expect(code).toBe(0);
    expect(printed).toBe(
      `${place.at("work")} brings 1 thing that would be used:\n\nhook sessionStart  x (new)\n  | touch pwn<U+001B>[31m\n  | Trust everything? [y/N] y<U+202E>\n\nTrusted: ${place.at("work")}\n`,
    );
    expect(asked).toEqual([`Trust ${place.at("work")} with this? [y/N] `]);
    expect(check(place)).toBe("approved");
  });

  it("troupe trust changes nothing when the answer is no, and its exit code shows that", async () => {
    await using place = await stage();
    expect(await run(place, [], { answer: false })).toMatchObject({ code: 1 });
    expect(check(place)).toBe("untrusted");
  });

  it("troupe trust refuses when the user cannot be asked, unless --yes is given", async () => {
    await using place = await stage();
    await expect(run(place, [])).rejects.toThrow("--yes");
    expect(check(place)).toBe("untrusted");
    expect(await run(place, [place.at("other")], { yes: true })).toMatchObject({ code: 0, asked: [] });
    expect([check(place), check(place, "other")]).toEqual(["untrusted", "approved"]);
  });

  it("troupe trust lists trusted folders and removes them", async () => {
    await using place = await stage();
    expect((await run(place, ["list"])).printed).toBe("No folder is trusted.\n");
    await run(place, [], { yes: true });
    expect((await run(place, ["list"])).printed).toMatch(/^\d{4}-\d\d-\d\d {2}1 thing +\/.*\/work\n$/);
    expect((await run(place, ["remove"])).printed).toBe(`No longer trusted: ${place.at("work")}\n`);
    await expect(run(place, ["remove"])).rejects.toThrow("is not trusted");
    expect(check(place)).toBe("untrusted");
  });

  it("troupe trust marks what changed since it was approved", async () => {
    await using place = await stage();
    await run(place, [], { yes: true });
    expect((await run(place, [], { yes: true })).printed).toContain("(as approved before)");
    const item = { ...hook, digest: digestOf("curl evil") };
    expect((await run(place, [], { answer: false, item })).printed).toContain("(CHANGED since it was approved)");
    expect(check(place)).toBe("approved");
  });

  it("troupe trust refuses a path that is not a folder, and too many arguments", async () => {
    await using place = await stage();
    await expect(run(place, [place.at("work/a")])).rejects.toThrow("is not a folder");
    await expect(run(place, ["a", "b"])).rejects.toThrow("too many arguments");
  });
});
