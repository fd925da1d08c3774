/** How an extension joins its session: with what a client may bring, and with a person's word for what goes beyond. */
import { TroupeError } from "../protocol/errors.ts";
import { permitAside } from "../session/permit-aside.ts";
import type { Session } from "../session/session.ts";
import type { ClientProfile } from "./clients.ts";
import type { Connection, ExtensionIdentity } from "./connection.ts";
import { clientProfile, optionsOf, type ResumeParams } from "./session-options.ts";

/** What it may answer with beside what every client is answered. */
export interface JoinGrant {
  readonly grantedEnvironmentVariables?: Readonly<Record<string, string>>;
}

/** Throws where a person says no; then nothing of it has come in. */
export async function admitExtension(
  session: Session,
  { extension }: Connection,
  params: ResumeParams,
): Promise<{ readonly profile: ClientProfile; readonly grant: JoinGrant }> {
  if (!extension) throw new Error("this client is no extension");
  const signal = session.end.signal;
  const capabilities = capabilitiesOf(params);
  if (capabilities.length > 0) {
    const access = { kind: "extension-permission-access", extensionName: extension.name, capabilities } as const;
    if (!(await permitAside(session, access, signal))) {
      throw new TroupeError("usage", `The extension ${extension.name} may not do this: ${capabilities.join(", ")}.`);
    }
    extension.decides = params.requestPermission === true;
  }
  const grant = await environmentFor(session, extension, params.requestedEnvironmentVariables ?? []);
  const ignored = Object.keys(optionsOf(params));
  if (ignored.length > 0) {
    const message = `The extension ${extension.name} cannot change what the session is made of; not used: ${ignored.join(", ")}.`;
    session.warn("extension", message);
  }
  const own = { canvasProvider: { id: extension.id, name: extension.name }, givesTokens: false, transforms: false };
  return { profile: { ...clientProfile(params), ...own }, grant };
}

/** What is a client's to decide and not an extension's, in words for people. */
function capabilitiesOf({ requestPermission, tools = [] }: ResumeParams): string[] {
  return [
    ...(requestPermission === true ? ["answer permission requests in your place"] : []),
    ...tools.filter(({ skipPermission }) => skipPermission).map(({ name }) => `run ${name} without asking`),
    ...tools.filter(({ overridesBuiltInTool }) => overridesBuiltInTool).map(({ name }) => `replace the tool ${name}`),
  ];
}

async function environmentFor(
  session: Session,
  { name: extensionName }: ExtensionIdentity,
  names: readonly string[],
): Promise<JoinGrant> {
  const wanted = session.settings.surroundings?.extensions?.withheld(names) ?? {};
  const environmentVariables = Object.keys(wanted);
  if (environmentVariables.length === 0) return {};
  const access = { kind: "extension-env-access", extensionName, environmentVariables } as const;
  if (await permitAside(session, access, session.end.signal)) return { grantedEnvironmentVariables: wanted };
  throw new TroupeError(
    "usage",
    `The extension ${extensionName} was denied environment variables: ${environmentVariables.join(", ")}.`,
  );
}
