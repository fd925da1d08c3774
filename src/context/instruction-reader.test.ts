import { expect, it } from "vitest";
import { tempFolder } from "../testing/temp-folder.ts";
import { type InstructionCandidate, InstructionReader } from "./instruction-reader.ts";

it("an instruction reader shares its limits with its forks, and reports a limit once", async () => {
  await using folder = await tempFolder({ "AGENTS.md": "text" });
  const notices: string[] = [];
  const reader = new InstructionReader({ cwd: folder.path, onNotice: (notice) => notices.push(notice) });
  const at = (name: string): InstructionCandidate => ({
    path: folder.at(name),
    scope: "repository",
    roots: [folder.path],
    importRoot: folder.path,
  });
  for (let count = 0; count < 1_000; count++) await reader.read(at("missing.md"));
  const fork = reader.fork();
  for (const each of [fork, fork, fork]) expect(await each.read(at("AGENTS.md"))).toBeUndefined();
  expect(notices).toEqual(["More than 1000 instruction files were found; the others were not read."]);
});
