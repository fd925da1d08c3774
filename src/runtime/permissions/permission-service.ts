import { existsSync } from "node:fs";
import { join } from "node:path";
import { listTrusted, realFolder, recordTrust } from "../../catalog/trust.ts";
import { Approval } from "../../permissions/approvals.ts";
import { type Grants, openGrants } from "../../permissions/grants.ts";
import { locationKey } from "../../permissions/location.ts";
import { parseUrlPattern, urlMatches, urlOrigin } from "../../permissions/urls.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { SessionSetup } from "../setup/session-setup.ts";
import type { CurrentRules, WireRule } from "./current-rules.ts";

/** A client's access to a session's permissions. Changes are stored only on the client's explicit request. */
export interface PermissionService {
  readonly rules: CurrentRules;
  resetApprovals(): void;
  /** Returns the location that approvals belong to. */
  locate(folder: string): { locationKey: string; locationType: "repo" | "dir" };
  /** Returns the rules that result. */
  copyLocationApprovalsToSession(folder: string): readonly WireRule[];
  approveInLocation(key: string, approval: unknown): Promise<void>;
  /**
   * Prepares an allow rule for addresses like the one in a request; calling the result applies it. `forGood` also adds
   * it to the user's settings for later sessions. Throws if `domain` does not cover the address.
   */
  allowUrl(request: { url: string; domain?: string | undefined; forGood: boolean }): () => Promise<void>;
  isTrusted(folder: string): boolean;
  trust(folder: string): Promise<void>;
}

export function permissionService(
  setup: SessionSetup,
  { current, grants }: { current: CurrentRules; grants: Grants },
): PermissionService {
  const { stateRoot, disk, stamp } = setup;
  const grantsOf = (location: string): Grants =>
    openGrants({ disk, file: join(stateRoot, "permissions-config.json"), location });
  return {
    rules: current,
    resetApprovals: () => grants.resetSession(),
    locate: (folder) => {
      const key = locationKey(folder);
      return { locationKey: key, locationType: existsSync(join(key, ".git")) ? "repo" : "dir" };
    },
    copyLocationApprovalsToSession(folder) {
      const approvals = grantsOf(locationKey(folder)).locationApprovals;
      for (const approval of approvals) grants.approveForSession(approval);
      return approvals.flatMap(rulesOf);
    },
    async approveInLocation(key, approval) {
      const parsed = Approval.safeParse(approval);
      if (!parsed.success) throw new TroupeError("usage", "This approval cannot be stored for a location.");
      await grantsOf(key).approveForLocation(parsed.data);
    },
    allowUrl({ url, domain, forGood }) {
      const pattern = patternFor(url, domain);
      return async () => {
        current.addRules([{ kind: "url", argument: pattern }]);
        if (forGood) await allowForGood(join(stateRoot, "settings.json"), pattern);
      };
    },
    isTrusted: (folder) => {
      const real = realFolder(folder);
      return listTrusted(stateRoot).folders.some((known) => known.folder === real);
    },
    async trust(folder) {
      const real = realFolder(folder);
      if (real === undefined) throw new TroupeError("usage", `There is no folder ${folder}.`);
      await recordTrust({ stateRoot, folder: real, items: [], disk, stamp });
    },
  };
}

/** Returns the narrowest pattern that covers the address: a host alone implies its protocol and port. */
function patternFor(url: string, domain: string | undefined): string {
  const origin = urlOrigin(url);
  if (origin === undefined) throw new TroupeError("usage", `${url} is not a valid URL.`);
  if (domain === undefined) return origin;
  const { protocol, port } = new URL(url);
  const written = [domain, `${protocol}//${domain}`, `${protocol}//${domain}:${port}`];
  const covers = (text: string): boolean => {
    const pattern = parseUrlPattern(text);
    return typeof pattern !== "string" && urlMatches(pattern, url);
  };
  const found = written.find(covers);
  if (found === undefined) throw new TroupeError("usage", `${domain} does not cover ${url}, which was asked about.`);
  return found;
}

async function allowForGood(file: string, pattern: string): Promise<void> {
  const { changeSettings } = await import("../../catalog/settings/settings-change.ts");
  await changeSettings(file, (settings) => ({
    ...settings,
    allowedUrls: [...new Set([...(Array.isArray(settings.allowedUrls) ? settings.allowedUrls : []), pattern])],
  }));
}

function rulesOf(approval: Approval): WireRule[] {
  switch (approval.kind) {
    case "commands":
      return approval.commandIdentifiers.map((identifier) => ({ kind: "shell", argument: identifier }));
    case "mcp":
      return [{ kind: "mcp", argument: [approval.serverName, approval.toolName].filter(Boolean).join("/") }];
    case "custom-tool":
      return [{ kind: "custom-tool", argument: approval.toolName }];
    default:
      return [{ kind: approval.kind, argument: null }];
  }
}
