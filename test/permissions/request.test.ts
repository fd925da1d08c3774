import type { SessionEvent } from "@github/copilot-sdk";
import { expect, expectTypeOf, it } from "vitest";
import { offeredApproval, type PermissionRequestData, permissionRequest } from "../../src/permissions/request.ts";
import { shellQuestion } from "./stage.ts";

it("a request for a plain command has the fields of the wire contract", () => {
  const question = shellQuestion("git status && grep -c x ./README > out.txt; curl https://x.com");
  expect(permissionRequest(question, "call-1")).toEqual({
    kind: "shell",
    toolCallId: "call-1",
    fullCommandText: "git status && grep -c x ./README > out.txt; curl https://x.com",
    intention: "",
    commands: [
      { identifier: "git status", readOnly: true },
      { identifier: "grep", readOnly: true },
      { identifier: "curl", readOnly: false },
    ],
    possiblePaths: ["./README"],
    possibleUrls: [{ url: "https://x.com" }],
    hasWriteFileRedirection: true,
    canOfferSessionApproval: false,
  });
});

it("a request for an opaque command has a warning and offers no lasting answer", () => {
  const question = shellQuestion("make $X");
  expect(permissionRequest(question)).toMatchObject({
    canOfferSessionApproval: false,
    warning: "Not a plain command: it uses expansions or patterns. Read all 7 characters.",
  });
  expect(offeredApproval(question)).toBeUndefined();
  expect(offeredApproval(shellQuestion("make && git push"))).toEqual({
    kind: "commands",
    commandIdentifiers: ["make", "git push"],
  });
});

it("permission requests of the other kinds have the fields of the wire contract", () => {
  const question = (access: Parameters<typeof permissionRequest>[0]["access"]) => ({ access, toolName: "x", cwd: "/" });
  const write = { kind: "write" as const, path: "a.ts", diff: "+x", intention: "Create a.ts" };
  expect(permissionRequest(question(write))).toEqual({
    kind: "write",
    fileName: "a.ts",
    diff: "+x",
    intention: "Create a.ts",
    canOfferSessionApproval: true,
  });
  expect(permissionRequest(question({ kind: "read", path: "a.ts" }))).toEqual({
    kind: "read",
    path: "a.ts",
    intention: "Read a.ts",
  });
});

type Data<T extends SessionEvent["type"]> = Extract<SessionEvent, { type: T }>["data"];

it("permission requests fit the types of the wire contract", () => {
  // The published release has no words for variables of extensions yet; those after it have.
  type Later = { kind: "extension-env-access" };
  expectTypeOf<Exclude<PermissionRequestData, Later>>().toExtend<Data<"permission.requested">["permissionRequest"]>();
});
