import { symlink } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { decide } from "../../src/permissions/decide.ts";
import type { PermissionQuestion } from "../../src/permissions/policy.ts";
import type { Access } from "../../src/protocol/permission.ts";
import {
  afterPlan,
  initialMode,
  modeChange,
  modeOf,
  modeSection,
  planPolicy,
  toolsInMode,
} from "../../src/session/modes/modes.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { autopilotTools, builtinTools, interactiveTools } from "../../src/tools/builtin.ts";
import { policy, rules, shellQuestion, yolo } from "../permissions/stage.ts";

describe("the initial mode", () => {
  it.each([
    [{}, "interactive"],
    [{ mode: "plan" }, "plan"],
    [{ autopilot: true }, "autopilot"],
    [{ plan: true }, "plan"],
    [{ plan: true, mode: "plan" }, "plan"],
    [{ autopilot: false, plan: false, mode: "autopilot" }, "autopilot"],
  ])("the initial mode is read from %j as %s", (flags, expected) => {
    expect(initialMode(flags)).toBe(expected);
  });

  it.each([
    { autopilot: true, plan: true },
    { mode: "plan", autopilot: true },
    { mode: "interactive", plan: true },
    { mode: "yolo" },
  ])("the initial mode is refused for %j", (flags) => {
    expect(() => initialMode(flags)).toThrow(expect.objectContaining({ kind: "usage" }));
  });
});

describe("ORC-84 a change of mode", () => {
  it("ORC-84 a change of mode is announced once, with the previous mode", () => {
    expect(modeChange("interactive", "plan")).toEqual({ previousMode: "interactive", newMode: "plan" });
    expect(modeChange("plan", "plan")).toBeUndefined();
  });

  it("ORC-84 the last change of mode is read back from the log", () => {
    const change = (newMode: string) => ({
      type: "session.mode_changed",
      data: { previousMode: "interactive", newMode },
    });
    expect(modeOf([])).toBeUndefined();
    expect(modeOf([change("plan"), { type: "user.message", data: {} }, change("autopilot"), change("nonsense")])).toBe(
      "autopilot",
    );
  });

  it("ORC-70 the action that was chosen for a plan decides the mode", () => {
    expect(afterPlan("autopilot_fleet")).toEqual({ mode: "autopilot", startsFleet: true });
    expect(afterPlan("autopilot")).toEqual({ mode: "autopilot", startsFleet: false });
    expect(afterPlan("interactive")).toEqual({ mode: "interactive", startsFleet: false });
    expect(afterPlan("exit_only")).toEqual({ mode: "interactive", startsFleet: false });
  });
});

describe("instructions and tools of a mode", () => {
  const all = [...builtinTools, ...interactiveTools, ...autopilotTools];
  const missing = (mode: Parameters<typeof toolsInMode>[0]): string[] => {
    const given = toolsInMode(mode, all);
    return all.filter((tool) => !given.includes(tool)).map(({ name }) => name);
  };

  it.each([
    ["interactive", ["exit_plan_mode", "task_complete"]],
    ["autopilot", ["exit_plan_mode"]],
    ["plan", ["apply_patch", "write_bash", "task_complete"]],
  ] as const)("the mode %s omits the tools %j", (mode, expected) => {
    expect(missing(mode)).toEqual(expected);
  });

  it("the instructions of each mode contain what the agent must know", () => {
    const planFile = "/state/files/plan.md";
    expect(modeSection("interactive", { planFile })).toBeUndefined();
    const plan = modeSection("plan", { planFile }) ?? "";
    for (const fact of [planFile, "`exit_plan_mode`", "[[PLAN]]", "every agent you start"])
      expect(plan).toContain(fact);
    const alone = modeSection("autopilot", { planFile }) ?? "";
    for (const fact of ["`task_complete`", "Nobody answers", "allows you nothing more"]) expect(alone).toContain(fact);
  });
});

describe("plan mode", () => {
  const everything = policy({
    rules: rules("allow", "shell", "write", "github", "github(named)"),
    session: [{ kind: "write" }],
    allowances: yolo,
  });
  const plan = planPolicy(everything, "/srv/project/plan.md");
  const ask = (access: Access): PermissionQuestion => ({ access, toolName: "edit", cwd: "/srv/project" });
  const write = (path: string): Access => ({ kind: "write", path, diff: "", intention: "" });
  const mcp = (toolName: string, readOnly = false): Access => ({
    ...{ kind: "mcp", serverName: "github", toolName, toolTitle: "t", readOnly },
  });

  it.each([
    ["a file", ask(write("/srv/project/src/a.ts"))],
    ["a file beside the plan", ask(write("plan.md.bak"))],
    ["a file below the plan", ask(write("plan.md/x"))],
    ["a file reached by dots", ask(write("plan.md/../a.ts"))],
    ["leaving the sandbox", ask({ kind: "sandbox-off", command: "ls", intention: "" })],
    ["a tool of a server that is allowed as a whole", ask(mcp("t"))],
    ["a tool of the same name of another server", ask({ ...mcp("named"), serverName: "read" } as Access)],
    ...[
      "rm a",
      "echo x > a.ts",
      "cat a | tee b",
      "echo x 2< a.ts > /dev/stderr",
      "git commit -m x",
      "npm test",
      "sed -i s/a/b/ c",
      "find . -delete",
      "$(x)",
      "bash -c ls",
      "GIT_PAGER=x git log",
      "cd lib && git status",
      "git -C lib status",
      "",
    ].map((command): [string, PermissionQuestion] => [`the command ${command}`, shellQuestion(command)]),
  ])("plan mode refuses %s although everything is allowed", (_, question) => {
    expect(plan.reasonToRefuse(question)).toMatch(/^plan mode is on/);
  });

  it.each([
    ["the plan", ask(write("/srv/project/plan.md"))],
    ["the plan by its short name", ask(write("./plan.md"))],
    ["reading", ask({ kind: "read", path: "a.ts" })],
    ["an agent", ask({ kind: "agent", agentName: "explore", intention: "" })],
    ["a page", ask({ kind: "url", url: "https://example.com", intention: "" })],
    ["a tool that an allow rule names", ask(mcp("named"))],
    ["reading the resources of a server", ask(mcp("resources", true))],
    ...["ls -la", "git log --oneline", "grep -rn x src | head -5", "cat a.ts 2>/dev/null"].map(
      (command): [string, PermissionQuestion] => [`the command ${command}`, shellQuestion(command)],
    ),
  ])("plan mode leaves %s to the rules", (_, question) => {
    expect(plan.reasonToRefuse(question)).toBeUndefined();
  });

  it("plan mode lets the plan be written without a question, unless a rule denies it", () => {
    const strict = policy();
    expect(decide(strict, ask(write("plan.md"))).decision).toBe("ask");
    expect(decide(planPolicy(strict, "/srv/project/plan.md").policy, ask(write("plan.md"))).decision).toBe("allow");
    const denying = policy({ rules: rules("deny", "write") });
    expect(decide(planPolicy(denying, "/srv/project/plan.md").policy, ask(write("plan.md"))).decision).toBe("deny");
  });

  it("plan mode does not accept a link in the place of the plan", async () => {
    await using folder = await tempFolder({ "victim.ts": "", "files/notes.md": "" });
    await symlink(folder.at("victim.ts"), folder.at("files/plan.md"));
    const { reasonToRefuse } = planPolicy(policy({ root: folder.path }), folder.at("files/plan.md"));
    const question = { access: write(folder.at("files/plan.md")), toolName: "create", cwd: folder.path };
    expect(reasonToRefuse(question)).toMatch(/is not the plan/);
  });
});
