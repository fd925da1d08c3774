import { execFile, spawnSync } from "node:child_process";
import { resolve } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { calls, modelServer, says, tempFolder } from "../../src/testing/index.ts";

const hasPython = spawnSync("python3", ["--version"]).status === 0;

describe("a client in another language", () => {
  it.skipIf(!hasPython)(
    "SDK-39 a client in another language uses the wire with only its standard library",
    async () => {
      const folder = await tempFolder({ "work/a.txt": "one\n" });
      await using model = await modelServer({
        steps: [calls(["read_temperature", { city: "Oslo" }]), says("Four degrees.")],
      });
      const client = resolve("examples/python/troupe_client.py");
      const flags = ["--base-url", model.baseUrl, "--model", "faux-model", "How warm is it in Oslo?"];
      const { stdout, stderr } = await promisify(execFile)("python3", [client, ...flags], {
        cwd: folder.at("work"),
        env: {
          PATH: process.env.PATH,
          HOME: folder.at("home"),
          TROUPE_HOME: folder.at("state"),
          TROUPE_NO_DISCOVERY: "1",
        },
        timeout: 120_000,
      });
      expect(stdout.trim()).toBe("Four degrees.");
      expect(stderr).toContain("external_tool.requested");
      expect(JSON.stringify(model.requests.at(-1)?.body)).toContain("It is 4 degrees in Oslo.");
      model.assertSpent();
      await folder.remove();
    },
  );
});
