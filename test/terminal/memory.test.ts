import { describe, expect, it } from "vitest";
import { calls, says, tempFolder } from "../../src/testing/index.ts";
import { READY, terminalStage } from "./stage.ts";

const store = {
  subject: "tests",
  fact: "Tests run with npm test.",
  citations: "package.json:12",
  reason: "Every change needs them.",
};
const vote = { fact: store.fact, direction: "upvote", reason: "It worked again." };

describe("an approval of memory in the terminal", () => {
  it("MEM-60 a memory approval shows fact, citations, scope and reason, and a vote its direction and reason", async () => {
    const settings = JSON.stringify({ memory: { enabled: true } });
    await using folder = await tempFolder({ "home/settings.json": settings });
    await using stage = await terminalStage({
      home: folder.at("home"),
      rows: 40,
      steps: [
        calls(["store_memory", { ...store, scope: "user" }]),
        calls(["store_memory", { ...store, subject: "build", fact: "Builds take a minute." }]),
        calls(["vote_memory", vote]),
        says("Noted."),
      ],
    });
    await stage.shows(READY);
    stage.send("remember it\r");
    const first = await stage.shows("all repositories of the user");
    for (const shown of [store.fact, store.subject, store.citations, store.reason]) expect(first).toContain(shown);
    await stage.shows("▌ y accept");
    stage.send("y");
    const second = await stage.shows("this repository");
    expect(second).toContain("Builds take a minute.");
    await stage.shows(/^▌ y accept/m);
    stage.send("y");
    const third = await stage.shows("upvote");
    for (const shown of [vote.fact, vote.reason]) expect(third).toContain(shown);
    await stage.shows(/^▌ y accept/m);
    stage.send("y");
    await stage.shows("Noted.");
  });
});
