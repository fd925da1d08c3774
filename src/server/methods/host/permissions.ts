/** The permissions that a session's client grants without a request. */
import * as z from "zod";
import type { Session } from "../../../session/session.ts";
import { exclusionParams, requireNoExclusions } from "../../sessions/session-options.ts";
import { servicesOf } from "../agents/skills.ts";
import { type MethodTable, nothing, sessionMethod } from "../method.ts";

const Rule = z.object({ kind: z.string().min(1), argument: z.string().nullable() });
const enabled = () => ({ enabled: z.boolean() });
const path = () => ({ path: z.string().min(1) });
const workingDirectory = () => ({ workingDirectory: z.string().min(1) });
const done = { success: true };

export const permissionsMethods: MethodTable = {
  "session.permissions.configure": sessionMethod(
    () => ({
      approveAllToolPermissionRequests: z.boolean().optional(),
      approveAllReadPermissionRequests: z.boolean().optional(),
      rules: z.object({ approved: z.array(Rule), denied: z.array(Rule) }).optional(),
      paths: z
        .object({
          unrestricted: z.boolean().optional(),
          additionalDirectories: z.array(z.string()).default([]),
          workspacePath: z.string().optional(),
        })
        .optional(),
      urls: z
        .object({ unrestricted: z.boolean().optional(), initialAllowed: z.array(z.string()).default([]) })
        .optional(),
      ...exclusionParams(),
    }),
    (params, { session }) => {
      requireNoExclusions(params);
      const rules = rulesOf(session);
      const { approveAllToolPermissionRequests: all, approveAllReadPermissionRequests: reads, paths, urls } = params;
      if (params.rules || urls) {
        const addresses = (urls?.initialAllowed ?? []).map((url) => ({ kind: "url", argument: url }));
        const { approved = [], denied = [] } = params.rules ?? {};
        rules.replaceRules({ approved: [...approved, ...addresses], denied });
      }
      for (const folder of paths?.additionalDirectories ?? []) rules.addFolder(folder);
      if (paths?.workspacePath !== undefined) rules.setPrimary(paths.workspacePath);
      if (reads !== undefined) rules.setReads(reads ? "allowed" : "asked");
      const isAllowed = all === undefined || allowAll(session, all);
      const areUrls = urls?.unrestricted === undefined || rules.setAllUrls(urls.unrestricted);
      return { success: isAllowed && areUrls };
    },
  ),
  "session.permissions.setApproveAll": sessionMethod(enabled, (params, { session }) => ({
    success: allowAll(session, params.enabled),
  })),
  // The names that SDK 1.0.11 uses for the two methods below.
  "session.permissions.setAllowAll": sessionMethod(
    () => ({ mode: z.enum(["off", "on", "auto"]).optional(), enabled: z.boolean().optional() }),
    ({ mode, enabled: wanted = mode === "on" }, { session }) => {
      const success = mode !== "auto" && allowAll(session, wanted);
      return { success, ...allowAllState(session) };
    },
  ),
  "session.permissions.getAllowAll": sessionMethod(nothing, (_, { session }) => allowAllState(session)),
  "session.permissions.setMode": sessionMethod(
    () => ({ mode: z.enum(["manual", "assisted", "allow-all"]) }),
    ({ mode }, { session }) => {
      // No assistant decides for the user: the assisted mode is refused and requests are asked.
      const success = mode !== "assisted" && allowAll(session, mode === "allow-all");
      return { success, mode: modeOf(session) };
    },
  ),
  "session.permissions.getMode": sessionMethod(nothing, (_, { session }) => ({ mode: modeOf(session) })),
  "session.permissions.modifyRules": sessionMethod(
    () => ({
      scope: z.enum(["session", "location"]),
      add: z.array(Rule).default([]),
      remove: z.array(Rule).default([]),
      removeAll: z.boolean().default(false),
    }),
    ({ scope, add, remove, removeAll }, { session }) => {
      if (scope === "location") return { success: false }; // approvals of a location are made by answers to requests
      const rules = rulesOf(session);
      if (removeAll) rules.removeRules("all");
      rules.removeRules(remove);
      rules.addRules(add);
      return done;
    },
  ),
  "session.permissions.setRequired": sessionMethod(
    () => ({ required: z.boolean() }),
    () => done, // requests that no rule decides are always asked
  ),
  "session.permissions.resetSessionApprovals": sessionMethod(
    () => ({ includeLocation: z.boolean().default(false) }),
    (_, { session }) => {
      servicesOf(session).permissions.resetApprovals();
      return done;
    },
  ),
  "session.permissions.notifyPromptShown": sessionMethod(
    () => ({ message: z.string() }),
    () => done,
  ),
  "session.permissions.paths.list": sessionMethod(nothing, (_, { session }) => {
    const { roots, primary } = rulesOf(session);
    return { primary, directories: [...new Set([primary, ...roots])] };
  }),
  "session.permissions.paths.add": sessionMethod(path, (params, { session }) => {
    rulesOf(session).addFolder(params.path);
    return done;
  }),
  "session.permissions.paths.updatePrimary": sessionMethod(path, (params, { session }) => {
    rulesOf(session).setPrimary(params.path);
    return done;
  }),
  "session.permissions.paths.isPathWithinAllowedDirectories": sessionMethod(path, (params, { session }) => ({
    allowed: rulesOf(session).isWithin(params.path, "allowed"),
  })),
  "session.permissions.paths.isPathWithinWorkspace": sessionMethod(path, (params, { session }) => ({
    allowed: rulesOf(session).isWithin(params.path, "workspace"),
  })),
  "session.permissions.locations.resolve": sessionMethod(workingDirectory, (params, { session }) =>
    servicesOf(session).permissions.locate(params.workingDirectory),
  ),
  "session.permissions.locations.apply": sessionMethod(workingDirectory, (params, { session }) => {
    const { permissions } = servicesOf(session);
    const appliedRules = permissions.copyLocationApprovalsToSession(params.workingDirectory);
    return {
      ...permissions.locate(params.workingDirectory),
      changed: appliedRules.length > 0,
      appliedRuleCount: appliedRules.length,
      appliedDirectoryCount: 0,
      appliedRules,
    };
  }),
  "session.permissions.locations.addToolApproval": sessionMethod(
    () => ({ locationKey: z.string().min(1), approval: z.looseObject({ kind: z.string() }) }),
    async ({ locationKey, approval }, { session }) => {
      await servicesOf(session).permissions.approveInLocation(locationKey, approval);
      return done;
    },
  ),
  "session.permissions.folderTrust.isTrusted": sessionMethod(path, (params, { session }) => ({
    trusted: servicesOf(session).permissions.isTrusted(params.path),
  })),
  "session.permissions.folderTrust.addTrusted": sessionMethod(path, async (params, { session }) => {
    await servicesOf(session).permissions.trust(params.path);
    return done;
  }),
  "session.permissions.urls.setUnrestrictedMode": sessionMethod(enabled, (params, { session }) => ({
    success: rulesOf(session).setAllUrls(params.enabled),
  })),
};

const rulesOf = (session: Session) => servicesOf(session).permissions.rules;
const modeOf = (session: Session): "manual" | "allow-all" => (rulesOf(session).allowsAll ? "allow-all" : "manual");
const allowAllState = (session: Session) => {
  const { allowsAll } = rulesOf(session);
  return { enabled: allowsAll, mode: allowsAll ? "on" : "off" };
};

/** Returns false if the user's settings forbid it. Clients are notified of a change. */
function allowAll(session: Session, isWanted: boolean): boolean {
  const rules = rulesOf(session);
  const before = rules.allowsAll;
  const previousMode = modeOf(session);
  if (!rules.setAllowAll(isWanted)) return false;
  if (before !== isWanted) {
    void session.record.emit("session.permissions_changed", {
      mode: modeOf(session),
      previousMode,
      allowAllPermissions: isWanted,
      previousAllowAllPermissions: before,
    });
  }
  return true;
}
