/**
 * Joins an extension to its session. It may provide what a client may provide; anything beyond that needs the user's
 * approval.
 */
import { TroupeError } from "../../protocol/errors.ts";
import { permitOutsideCall } from "../../session/requests/permit-outside-call.ts";
import type { Session } from "../../session/session.ts";
import type { ClientProfile } from "../clients/clients.ts";
import type { ClientConnection, ExtensionIdentity } from "../connection.ts";
import { clientProfile, optionsOf, type ResumeParams } from "../sessions/session-options.ts";
import { warnWithoutEffect } from "../sessions/unused-options.ts";
import { answersOf } from "./extension-rights.ts";

/** Fields added to the response that every client receives. */
export interface JoinGrant {
  readonly grantedEnvironmentVariables?: Readonly<Record<string, string>>;
}

/** Throws if the user refuses; nothing of the extension is registered then. Aborting `gone` withdraws the question. */
export async function admitExtension(
  session: Session,
  { extension }: ClientConnection,
  { params, gone }: { readonly params: ResumeParams; readonly gone: AbortSignal },
): Promise<{ readonly profile: ClientProfile; readonly grant: JoinGrant }> {
  if (!extension) throw new Error("this client is not an extension");
  const signal = AbortSignal.any([session.queue.closed, gone]);
  const capabilities = capabilitiesOf(params, session);
  if (capabilities.length > 0) {
    const access = { kind: "extension-permission-access", extensionName: extension.name, capabilities } as const;
    if (!(await permitOutsideCall(session, access, signal))) {
      throw new TroupeError("usage", `The extension ${extension.name} may not do this: ${capabilities.join(", ")}.`);
    }
    extension.answers = new Set(answersOf(params).map(({ method }) => method));
  }
  const grant = await environmentFor(session, { extension, names: params.requestedEnvironmentVariables ?? [], signal });
  const ignored = Object.keys(optionsOf(params));
  if (ignored.length > 0) {
    const message = `The extension ${extension.name} cannot set these session options; they were not used: ${ignored.join(", ")}.`;
    session.record.warn("extension", message);
  }
  warnWithoutEffect(session, params);
  const own = { canvasProvider: { id: extension.id, name: extension.name }, givesTokens: false, transforms: false };
  return { profile: { ...clientProfile(params), ...own }, grant };
}

/** Describes for the user the requested capabilities that a client may have and an extension may not. */
function capabilitiesOf(params: ResumeParams, { mainAgent }: Session): string[] {
  const { tools = [] } = params;
  // A tool of the same name takes the place of a built-in one, whether or not the extension says so.
  const builtin = new Set(mainAgent.prompt.tools.filter(({ origin }) => origin === undefined).map(({ name }) => name));
  return [
    ...answersOf(params).map(({ words }) => words),
    ...tools.filter(({ skipPermission }) => skipPermission).map(({ name }) => `run ${name} without asking`),
    ...tools
      .filter(({ name, overridesBuiltInTool }) => overridesBuiltInTool || builtin.has(name))
      .map(({ name }) => `replace the tool ${name}`),
  ];
}

interface EnvironmentRequest {
  readonly extension: ExtensionIdentity;
  readonly names: readonly string[];
  readonly signal: AbortSignal;
}

async function environmentFor(session: Session, { extension, names, signal }: EnvironmentRequest): Promise<JoinGrant> {
  const { name: extensionName } = extension;
  const wanted = session.workspace.services?.extensions?.withheld(extension.id, names) ?? {};
  const environmentVariables = Object.keys(wanted);
  if (environmentVariables.length === 0) return {};
  const access = { kind: "extension-env-access", extensionName, environmentVariables } as const;
  if (await permitOutsideCall(session, access, signal)) return { grantedEnvironmentVariables: wanted };
  throw new TroupeError(
    "usage",
    `The extension ${extensionName} was denied environment variables: ${environmentVariables.join(", ")}.`,
  );
}
