import { execFileSync } from "node:child_process";
import { mkdir, symlink } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { workspaceEnvironment } from "../../src/catalog/dotenv.ts";
import { isRefusedName, parseDotenv } from "../../src/catalog/dotenv-parse.ts";
import { readTrust, recordTrust, type Trust } from "../../src/catalog/trust.ts";
import { nodeDisk } from "../../src/lib/node/disk.ts";
import type { PinnedItem } from "../../src/lib/pinned-item.ts";
import { systemStamp } from "../../src/lib/stamp.ts";
import { type TempFolder, tempFolder } from "../../src/testing/temp-folder.ts";

const forRun: Trust = { state: "run", check: () => "approved" };
const read = (place: TempFolder, trust: Trust = forRun, secrets: "withheld" | "given" = "withheld") => {
  const { values, notices } = workspaceEnvironment({ folder: place.path, trust, secrets });
  return { values, notices: notices.map(({ message }) => message.replaceAll(place.path, "")) };
};
const itemsOf = ({ path }: TempFolder): PinnedItem[] => {
  const items: PinnedItem[] = [];
  const check = (item: PinnedItem) => {
    items.push(item);
    return "approved" as const;
  };
  workspaceEnvironment({ folder: path, trust: { state: "run", check: check as Trust["check"] }, secrets: "withheld" });
  return items;
};
const valuesOf = (text: string) =>
  Object.fromEntries([...parseDotenv(text).values].map(([name, { value }]) => [name, value]));

const HOSTILE = `TROUPE_HOME=./.troupe
NODE_OPTIONS=--require ./x.js
GIT_SSH_COMMAND=sh evil
GREETING=hello
`;

describe("A03: a workspace's .env", () => {
  it("a workspace's .env is not read before the folder is trusted", async () => {
    await using place = await tempFolder({ ".env": HOSTILE });
    expect(read(place, readTrust(place.at("home")).of(place.path))).toEqual({ values: {}, notices: [] });
  });

  it("a workspace's .env never sets variables that decide which code runs, even after trust, and reports that", async () => {
    await using place = await tempFolder({ ".env": HOSTILE });
    expect(read(place)).toEqual({
      values: { GREETING: "hello" },
      notices: ["TROUPE_HOME", "NODE_OPTIONS", "GIT_SSH_COMMAND"].map(
        (name, index) =>
          `/.env:${index + 1}: ${name} is ignored: it could change which programs run or where they connect.`,
      ),
    });
  });

  it.each(
    `TROUPE_HOME COPILOT_HOME NODE_OPTIONS NODE_PATH LD_PRELOAD DYLD_INSERT_LIBRARIES PATH Path HTTP_PROXY https_proxy
    all_proxy no_proxy OPENAI_BASE_URL anthropic_base_url GIT_DIR git_config_count BASH_ENV ENV SHELLOPTS IFS HOME
    PYTHONSTARTUP PYTHONPATH RUBYOPT PERL5OPT npm_config_registry NPM_CONFIG_SCRIPT_SHELL BASH_FUNC_ls PS4
    PROMPT_COMMAND EDITOR PAGER LESSOPEN JAVA_TOOL_OPTIONS DOTNET_STARTUP_HOOKS CARGO_HOME RUSTC_WRAPPER SSL_CERT_FILE
    OPENSSL_CONF XDG_CONFIG_HOME SSH_AUTH_SOCK KUBECONFIG DOCKER_HOST ZDOTDIR GCONV_PATH`.split(/\s+/),
  )("a workspace's .env never sets %s", (name) => {
    expect(isRefusedName(name)).toBe(true);
  });

  it.each("PORT DATABASE_URL CORS_ORIGIN DEBUG REDIS_HOST MY_PATH FEATURE_GIT ENVIRONMENT PROXY_COUNT".split(" "))(
    "a workspace's .env may set %s",
    (name) => {
      expect(isRefusedName(name)).toBe(false);
    },
  );

  it("a workspace's .env is used only as approved: a changed value is not used", async () => {
    await using place = await tempFolder({ ".env": "A=1\n", ".env.local": "B=2\n" });
    await using home = await tempFolder();
    const items = itemsOf(place);
    expect(items.map(({ kind, id, shown }) => [kind, id, shown])).toEqual([
      ["environment", ".env", "for commands the agent runs:\nA (1 characters)"],
      ["environment", ".env.local", "for commands the agent runs:\nB (1 characters)"],
    ]);
    await recordTrust({ stateRoot: home.path, folder: place.path, items, disk: nodeDisk, stamp: systemStamp });
    const trust = readTrust(home.path).of(place.path);
    expect(read(place, trust)).toEqual({ values: { A: "1", B: "2" }, notices: [] });
    await place.files({ ".env": "A=evil\n" });
    expect(read(place, trust)).toEqual({
      values: { B: "2" },
      notices: ["/.env is not used: it has changed since it was approved. Approve it with: troupe trust"],
    });
  });

  it("a workspace's .env shows no value in the approval, and marks names that will not be set", async () => {
    await using place = await tempFolder({ ".env": "SECRET=hunter22\nPATH=/evil\n" });
    const [item] = itemsOf(place);
    expect(item?.shown).toBe("for commands the agent runs:\nSECRET (8 characters)\nPATH (never set from a file)");
  });

  it("a workspace's .env passes values that look like secrets only when the user's settings allow it", async () => {
    await using place = await tempFolder({ ".env": "API_KEY=abc\nDB_PASSWORD=x\nPORT=80\n" });
    const withheld = read(place);
    expect(withheld.values).toEqual({ PORT: "80" });
    expect(withheld.notices).toEqual([expect.stringContaining("look like secrets: API_KEY, DB_PASSWORD.")]);
    expect(read(place, forRun, "given")).toEqual({
      values: { API_KEY: "abc", DB_PASSWORD: "x", PORT: "80" },
      notices: [],
    });
  });

  it("A03: a workspace's .env is ignored as a folder, and refused as a pipe, an outside link or when too large", async () => {
    await using place = await tempFolder({ "outside/.env": "A=1" });
    await mkdir(place.at("a/.env"), { recursive: true });
    await mkdir(place.at("b"));
    execFileSync("mkfifo", [place.at("b/.env")]);
    await mkdir(place.at("c"));
    await symlink(place.at("outside/.env"), place.at("c/.env"));
    await place.files({ "d/.env": `A=1\n${"#".repeat(64 * 1024)}` });
    const notices = ["a", "b", "c", "d"].map((name) => {
      const found = workspaceEnvironment({ folder: place.at(name), trust: forRun, secrets: "given" });
      expect(found.values).toEqual({});
      return found.notices.map(({ message }) => message.replaceAll(place.path, ""));
    });
    expect(notices).toEqual([
      [],
      ["/b/.env is not used: it is not a regular file."],
      ["/c/.env is not used: it leads outside /c."],
      ["/d/.env is not used: it is larger than 64 KiB."],
    ]);
  });
});

describe("the text of a .env", () => {
  it("the .env parser reads names and values, and expands or runs nothing", () => {
    const text = [
      "# comment",
      "A=1",
      " export B = two words # comment",
      "C='single $HOME # kept'",
      'D="tab\\tquote\\" $(id) `id` $A" # comment',
      "E=",
      "F=a#b",
      'G="first',
      'second=2"',
      "H=$(touch x)\r",
      "A=again",
      "toString=x",
    ].join("\n");
    expect(valuesOf(text)).toEqual({
      A: "again",
      B: "two words",
      C: "single $HOME # kept",
      D: 'tab\tquote" $(id) `id` $A',
      E: "",
      F: "a#b",
      G: "first\nsecond=2",
      H: "$(touch x)",
      toString: "x",
    });
  });

  it("the .env parser reports a line that it does not understand", () => {
    const text = ["oops", "A=1", "1B=2", 'C="x" y', "", 'D="open', "E=1"].join("\n");
    expect(valuesOf(text)).toEqual({ A: "1" });
    expect(parseDotenv(text).problems).toEqual([
      { line: 1, message: "is ignored: it does not have the form NAME=value." },
      { line: 3, message: "is ignored: it does not have the form NAME=value." },
      { line: 4, message: "C is ignored: there is text after its closing quote." },
      { line: 6, message: "the rest is ignored: the quote after D is not closed." },
    ]);
  });

  it("the .env parser reads at most five hundred names", () => {
    const many = Array.from({ length: 600 }, (_, index) => `N${index}=1`).join("\n");
    const parsed = parseDotenv(many);
    expect(parsed.values.size).toBe(500);
    expect(parsed.problems).toEqual([{ line: 501, message: "the rest is ignored: more than 500 names." }]);
  });

  it("the .env parser does not set members of object prototypes", async () => {
    await using place = await tempFolder({ ".env": "__proto__=x\nconstructor=x\nA=1" });
    expect(Object.keys(read(place, forRun, "given").values)).toEqual(["A"]);
  });
});
