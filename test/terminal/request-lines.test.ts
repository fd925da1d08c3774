import { describe, expect, it } from "vitest";
import { permissionRequest } from "../../src/permissions/request.ts";
import type { Access } from "../../src/protocol/permission.ts";
import { permissionText } from "../../src/protocol/permission-text.ts";
import type { PermissionRequest } from "../../src/session/requests/requests.ts";
import { requestLines, wholeRequest } from "../../src/terminal/panels/request-lines.ts";

const linesOf = (access: Access) =>
  requestLines(permissionText(permissionRequest({ access, toolName: "x", cwd: "/" }) as PermissionRequest).text);

const diff = "--- a/a.sql\n+++ b/a.sql\n@@ -1,2 +1,3 @@\n--- kept secret\n+++ counter\n ```\n+```\n";

describe("the lines of a request in a terminal", () => {
  it("the lines of a request have no fences, join a label with its only line, and name the file once", () => {
    expect(linesOf({ kind: "write", path: "/p/a.sql", intention: "Edit file", diff })).toEqual([
      "File: /p/a.sql",
      "Change:",
      "@@ -1,2 +1,3 @@",
      "--- kept secret",
      "+++ counter",
      " ```",
      "+```",
    ]);
  });

  it("the lines of a request keep every line of a command, also one that looks like a fence", () => {
    const command = "cat <<X\n```\n~~~\nX";
    expect(linesOf({ kind: "sandbox-off", command, intention: "Show it" }).slice(1)).toEqual([
      "Command:",
      ...command.split("\n"),
      "The model says: Show it",
    ]);
  });

  it("the whole text of a request keeps empty lines and the heads of a diff, indents what it quotes, and has no fences", () => {
    const text = "File:\n```\na.sh\n```\n\nCommand:\n````\ncat <<X\n\n```\nX\n````";
    expect(wholeRequest(text)).toEqual(["File:", "  a.sh", "Command:", "  cat <<X", "", "  ```", "  X"]);
  });
});
