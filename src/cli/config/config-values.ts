/** Values in settings, addressed by keys with dots: `permissions.allow`. */
import { isObject, type Json } from "../../lib/json.ts";

export type SettingsValues = { readonly [name: string]: Json };

export const stepsOf = (key: string): string[] => key.split(".");

export function valueAt(settings: SettingsValues, [step, ...rest]: readonly string[]): Json | undefined {
  if (step === undefined || !Object.hasOwn(settings, step)) return undefined;
  const value = settings[step];
  if (rest.length === 0) return value;
  return isObject(value) ? valueAt(value as SettingsValues, rest) : undefined;
}

/** Returns a copy with the value, or without it if it is undefined. An object that becomes empty is removed too. */
export function withValue(
  settings: SettingsValues,
  [step = "", ...rest]: readonly string[],
  value: Json | undefined,
): SettingsValues {
  const { [step]: before, ...others } = settings;
  if (rest.length === 0) return value === undefined ? others : { ...settings, [step]: value };
  const inner = withValue(isObject(before) ? (before as SettingsValues) : {}, rest, value);
  return value === undefined && Object.keys(inner).length === 0 ? others : { ...settings, [step]: inner };
}

/** Returns the values that are not objects, with their keys. */
export function leavesOf(settings: SettingsValues, prefix = ""): [key: string, value: Json][] {
  return Object.entries(settings).flatMap(([name, value]): [string, Json][] => {
    const isBranch = isObject(value) && Object.keys(value).length > 0;
    return isBranch ? leavesOf(value as SettingsValues, `${prefix}${name}.`) : [[`${prefix}${name}`, value]];
  });
}

const SECRET = /(?:key|token|secret|password|passphrase|credential|authorization|cookie)$/i;
const MASK = "********";

/** Replaces secrets: values under a telling name, and the variables and headers of servers. References stay. */
export function maskSecrets(settings: SettingsValues): SettingsValues {
  return maskedIn(settings, { isSecret: false }) as SettingsValues;
}

function maskedIn(value: Json, { isSecret }: { isSecret: boolean }): Json {
  if (Array.isArray(value)) return value.map((element) => maskedIn(element, { isSecret }));
  if (isObject(value)) {
    return Object.fromEntries(
      Object.entries(value as SettingsValues).map(([name, inner]) => [
        name,
        maskedIn(inner, { isSecret: isSecret || SECRET.test(name) || name === "env" || name === "headers" }),
      ]),
    );
  }
  const isReference = typeof value === "string" && /^\$\{?\w+\}?$/.test(value);
  return isSecret && typeof value === "string" && !isReference ? MASK : value;
}
