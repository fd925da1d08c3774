/** A session that works for another one may do nothing that the other one may not. */

import { describe, expect, it } from "vitest";
import { decide } from "../../src/permissions/decide.ts";
import { ceilingOf, flagsWithin, limitingPolicy, movedCeiling } from "../../src/runtime/permissions/ceiling.ts";
import { type PolicyParts, policy, rules, shellQuestion, verdict, yolo } from "./stage.ts";

/** Decides in a session in /srv/child by the parent's policy, which travelled from /srv/project. */
function decideBelow(
  parent: PolicyParts,
  own: PolicyParts,
  question = shellQuestion("make all", "/srv/child"),
): string {
  const sent = JSON.parse(JSON.stringify(ceilingOf(policy(parent), ["/srv/project"]))) as ReturnType<typeof ceilingOf>;
  const moved = movedCeiling(sent, { from: "/srv/project", to: "/srv/child" });
  const base = policy({ ...own, root: "/srv/child" });
  const ceiling = limitingPolicy(moved, base, { own: ["/srv/child"], servers: [] });
  return verdict(decide({ ...base, ceiling }, question));
}

describe("the ceiling of a session", () => {
  const make = { rules: rules("allow", "shell(make:*)") };
  const cases: [string, PolicyParts, PolicyParts, string][] = [
    ["allows what both allow", make, { allowances: yolo }, "allow mode"],
    ["asks about what the parent asks about", {}, { allowances: yolo }, "ask default"],
    [
      "denies what the parent denies",
      { rules: rules("deny", "shell(make all)"), allowances: yolo },
      { allowances: yolo },
      "deny rule",
    ],
    [
      "allows nothing that the session itself denies",
      { allowances: yolo },
      { rules: rules("deny", "shell") },
      "deny rule",
    ],
    ["allows nothing that the session itself asks about", { allowances: yolo }, {}, "ask default"],
    [
      "counts an answer that a person gave in the session",
      {},
      { session: [{ kind: "commands", commandIdentifiers: ["make"] }] },
      "allow session",
    ],
    [
      "does not count approvals of the worker's machine",
      {},
      { location: [{ kind: "commands", commandIdentifiers: ["make"] }] },
      "ask default",
    ],
  ];
  it.each(cases)("the ceiling of a session gives the stricter decision: %s", (_, parent, own, expected) => {
    expect(decideBelow(parent, own)).toBe(expected);
  });

  it("rules about paths in a session's ceiling move with the working folder", () => {
    const write = (path: string) => ({
      ...{ access: { kind: "write" as const, path, diff: "", intention: "" }, toolName: "edit", cwd: "/srv/child" },
    });
    const parent = { rules: rules("deny", "write(/srv/project/secret)"), allowances: yolo };
    expect(decideBelow(parent, { allowances: yolo }, write("/srv/child/secret"))).toBe("deny rule");
    expect(decideBelow(parent, { allowances: yolo }, write("/srv/child/other"))).toBe("allow mode");
  });

  it("a session's ceiling narrows flags, through more than one session", () => {
    const above = ceilingOf(policy({ rules: rules("deny", "read(.npmrc)") }), []);
    const ceiling = { ...ceilingOf(policy({ allowances: yolo }), []), folders: ["/srv/shared"], above };
    const own = { allTools: true, allUrls: true, allPaths: true, paths: "all" as const, denyTools: ["url"] };
    expect(flagsWithin(own, ceiling)).toEqual({
      ...{ allTools: false, allUrls: false, allPaths: false, askReads: false },
      ...{ paths: [], denyTools: ["url", "read(.npmrc)"], consentPaths: [], ceiling },
    });
  });
});
