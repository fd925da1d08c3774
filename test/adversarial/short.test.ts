/** A few of the attacks, so that `npm test` notices a broken guard; `npm run test:adversarial` plays them all. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { copyProgram, weaken } from "../../scripts/weakened-program.mjs";
import { attacks, pending } from "./attacks.ts";
import { Stage } from "./stage.ts";
import { weaknesses } from "./weaknesses.ts";

const SHORT = ["A01", "A02", "A04", "B01", "B16", "C02", "C09", "H06", "K01"];

let base = "";
beforeAll(() => {
  base = mkdtempSync(join(tmpdir(), "troupe-adversarial-"));
});
afterAll(() => rmSync(base, { recursive: true, force: true }));

describe("attacks", () => {
  it.each(attacks.filter(({ id }) => SHORT.includes(id)))(
    "the attack $id gets nothing: $title",
    async ({ id, run }) => {
      const stage = new Stage({ guards: "on", root: resolve("."), base, id });
      try {
        expect((await run(stage)).breaches).toEqual([]);
      } finally {
        stage.close();
      }
    },
  );

  it("the attacks cover every starred case of the plan, each once", () => {
    const starred =
      "A01 A02 A03 A05 B01 B02 B03 B06 B09 B16 B22 C02 C04 C09 D01 D02 D03 D04 D05 D13 D15 E01 E02 F01 F02 " +
      "G01 G02 G03 G08 G14 H01 H02 H05 H06 H07 I01 J01";
    const ids = [...attacks, ...pending].map(({ id }) => id);
    expect(starred.split(" ").filter((id) => !ids.includes(id))).toEqual([]);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it("the attacks are watched by at least ten seeded weaknesses, which all can be put into the source", () => {
    const ids = attacks.map(({ id }) => id);
    expect(weaknesses.length).toBeGreaterThanOrEqual(10);
    expect(weaknesses.filter(({ watcher }) => !ids.includes(watcher))).toEqual([]);
    const changes = weaknesses.flatMap((weakness) => weakness.changes);
    expect(changes.filter(({ file, from }) => !readFileSync(file, "utf8").includes(from))).toEqual([]);
  });

  it("the attacks notice a weakness in a copy of the built program", async () => {
    const weakness = weaknesses.find(({ id }) => id === "trusts-every-folder");
    copyProgram(resolve("."), join(base, "copy"));
    await weaken(join(base, "copy"), join(base, "weak"), weakness?.changes ?? []);
    const stage = new Stage({ guards: "on", root: join(base, "weak"), base, id: "A01" });
    try {
      const found = await attacks.find(({ id }) => id === weakness?.watcher)?.run(stage);
      expect(found?.breaches.map(({ kind }) => kind)).toContain("effect");
    } finally {
      stage.close();
    }
  });
});
