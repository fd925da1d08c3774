import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { methods } from "../../src/server/methods/list.ts";

interface SdkDiff {
  readSdk(folder: string): { version: string; methods: string[]; callbacks: string[]; events: string[] };
  readServer(): Promise<{ events: { has(name: string): boolean } }>;
}

const { readSdk, readServer } = (await import(new URL("../../scripts/sdk-diff.mjs", import.meta.url).href)) as SdkDiff;
const served = new Set(Object.keys(methods));

/** Public methods that this server answers with "Unhandled method". */
const known: Readonly<Record<string, readonly string[]>> = {
  "@github/copilot-sdk": [],
  "copilot-sdk-1.0.14": [],
};

/** Public methods that came with SDK 1.0.15-preview.4, which is not installed here. */
const preview = [
  ...["catalog.select", "sandbox.getHostSupport", "session.managedSettings.get", "session.provider.sync"],
  ...["session.instructions.reload", "session.customizations.reload"],
  ...["appendSteering", "withdrawMessage"].map((name) => `session.queue.${name}`),
  ...["configure", "read"].map((name) => `session.diagnostics.${name}`),
  ...["cancelLogin", "prepareLogin"].map((name) => `session.mcp.oauth.${name}`),
  ...["enumerate", "get", "set", "login.begin", "login.advance", "login.cancel"].map(
    (name) => `session.accounts.${name}`,
  ),
  ...["getCapabilities", "getStatus", "list", "refresh", "connect", "reconnect", "continueConnection"].map(
    (name) => `session.connectors.${name}`,
  ),
  ...["disconnect", "reconcile"].map((name) => `session.connectors.${name}`),
  ...["install", "uninstall", "update", "enable", "disable"].map((name) => `session.plugins.${name}`),
  ...["add", "browse", "list", "refresh", "remove"].map((name) => `session.plugins.marketplaces.${name}`),
  ...["prepareInstall", "applyInstall", "planUninstall", "applyUninstall"].map((name) => `mcp.${name}`),
  ...["planInstall", "applyInstall", "planUninstall", "applyUninstall"].map((name) => `skills.${name}`),
  ...["cancel", "list", "recover", "status"].map((name) => `mcp.installations.${name}`),
  ...["cancel", "list", "recover", "setEnabled", "status"].map((name) => `skills.installations.${name}`),
];

it("the server has the public methods of SDK 1.0.15-preview.4 that 1.0.14 lacks", () => {
  expect(preview.length).toBe(54);
  expect(preview.filter((method) => !served.has(method))).toEqual([]);
});

it("every method of factories is also served under the names of workflows", () => {
  const of = (prefix: string) =>
    [...served].filter((name) => name.startsWith(prefix)).map((name) => name.slice(prefix.length));
  expect(of("session.workflow.")).toEqual(of("session.factory."));
});

/** Events that came with SDK 1.0.15-preview.4. */
const previewEvents = ["session.indexed_search", "session.model_deselected", "session.permission_recovery"];

it("the documentation lists exactly the SDK's events that are never sent", async () => {
  const server = await readServer();
  const known = [...readSdk("node_modules/copilot-sdk-1.0.14").events, ...previewEvents];
  const page = readFileSync("docs/compatibility.md", "utf8");
  const rows = /## Events that are never sent\n([\s\S]*?)(?=\n## |$)/.exec(page)?.[1]?.match(/^\| `.*$/gm) ?? [];
  const documented = rows.flatMap((row) =>
    [...(row.split("|")[1] ?? "").matchAll(/`([^`]+)`/g)].map(([, name]) => name),
  );
  expect(documented.sort()).toEqual(known.filter((name) => !server.events.has(name)).sort());
  expect(rows.filter((row) => (row.split("|")[2] ?? "").trim().length < 20)).toEqual([]);
});

describe.each(Object.entries(known))("the package %s", (name, unserved) => {
  it("the SDK has no unserved public method, except the known ones", () => {
    const sdk = readSdk(`node_modules/${name}`);
    expect(sdk.methods.length).toBeGreaterThan(250);
    expect(sdk.events.length).toBeGreaterThan(100);
    expect(sdk.methods.filter((method) => !served.has(method))).toEqual(unserved);
  });
});
