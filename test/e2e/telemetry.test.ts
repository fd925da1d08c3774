import { describe, expect, it } from "vitest";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { troupe } from "../support/troupe.ts";

describe("telemetry of one prompt", () => {
  it("telemetry of a prompt is written to the file before the program ends, and nowhere else", async () => {
    await using folder = await tempFolder({ "work/a.txt": "" });
    const finished = await troupe(["-p", "hello", "--model", "understudy"], {
      cwd: folder.at("work"),
      home: folder.at("home"),
      environment: { TROUPE_OTEL_FILE_EXPORTER_PATH: "../t.jsonl" },
    });
    expect(finished.code).toBe(0);
    expect(finished.stdout).not.toContain("invoke_agent");
    const lines = (await folder.read("t.jsonl")).trim().split("\n");
    const names = lines.map((line) => JSON.parse(line).name);
    expect(names.slice(0, 2)).toEqual([expect.stringMatching(/^chat /), "invoke_agent troupe"]);
    expect(names).toContain("gen_ai.client.operation.duration");
  });
});
