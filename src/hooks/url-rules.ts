/**
 * The addresses that an HTTP hook may send its input to. Checked when a configuration is read and again when the hook
 * runs.
 */
import { isIP } from "node:net";
import { addressKind, isLocalName, isTranslated, refusalOf, refusalOfName } from "../lib/address.ts";
import { isOwnAddress } from "../lib/node/own-address.ts";
import type { HookOwner, HttpRun } from "./hooks.ts";
import { type HookPoint, isAuthorising } from "./points.ts";

export type HookVariables = Readonly<Record<string, string | undefined>>;

export interface UrlContext {
  readonly point: HookPoint;
  readonly owner: HookOwner;
  readonly environment: HookVariables;
}

/** Returns an error for the URL as written, or undefined. */
export function urlProblem(run: Pick<HttpRun, "url" | "allowedEnvVars">, context: UrlContext): string | undefined {
  if (!URL.canParse(run.url)) return "url: is not an address such as https://example.com/hook";
  const url = new URL(run.url);
  if (url.protocol !== "https:" && url.protocol !== "http:") return "url: must begin with https://";
  if (url.username !== "" || url.password !== "") return "url: must not contain a user name or password; use headers";
  const host = hostOf(url);
  const isLocal = isLocalName(host) || addressKind(host) === "loopback";
  const local = isLocal && allowsLocalhost(context.environment);
  if (url.protocol === "http:" && !local) {
    if (run.allowedEnvVars.length > 0) return "url: must begin with https:// when allowedEnvVars is used";
    if (isAuthorising(context.point) && context.environment.COPILOT_HOOK_ALLOW_HTTP_AUTH_HOOKS !== "1")
      return `url: must begin with https:// for ${context.point}`;
  }
  const nameRefusal = mustBePublic(context) ? refusalOfName(host, { allowLocalhost: local }) : undefined;
  if (nameRefusal !== undefined) return `url: ${host} is ${nameRefusal}`;
  return isIP(host) === 0 ? undefined : addressProblem(host, context);
}

/**
 * Returns an error for a resolved address, or undefined. Deciding hooks and hooks of a project may use public addresses
 * only.
 */
export function addressProblem(address: string, context: UrlContext): string | undefined {
  if (!mustBePublic(context) || !isPrivate(address)) return undefined;
  if (addressKind(address) === "loopback" && allowsLocalhost(context.environment)) return undefined;
  return `url: ${address} is an address of this machine or its network`;
}

export function hostOf(url: URL): string {
  return url.hostname.replace(/^\[(.*)\]$/, "$1").replace(/\.+$/, "");
}

const mustBePublic = ({ point, owner }: UrlContext): boolean => isAuthorising(point) || owner === "project";
const allowsLocalhost = (environment: HookVariables): boolean => environment.COPILOT_HOOK_ALLOW_LOCALHOST === "1";

/**
 * Returns true for anything that is not a public Internet address. This includes text that is not an address, and addresses
 * that a NAT64 gateway would translate: the target of that gateway is unknown.
 */
const isPrivate = (address: string): boolean =>
  refusalOf(address) !== undefined || isTranslated(address) || isOwnAddress(address);
