/** Known secret values, and the forms in which they may appear in a text. */
import { looksSecret } from "../node/child-environment.ts";

export interface SecretValue {
  readonly name: string;
  readonly value: string;
}

/** One searched form of a value. */
export interface Needle {
  readonly text: string;
  /** Compare without case; `text` is in lower case then. */
  readonly anyCase: boolean;
  /** In base64 the last character may depend on what follows; it is removed too, with the padding. */
  readonly encoded: boolean;
}

const MIN_LENGTH = 8;
const MAX_VALUE = 64 * 1024;
/** Longer values are searched in pieces. */
const PIECE = 4096;
const MIN_LINE = 20;
const ALWAYS_SECRET: readonly string[] = ["GITHUB_TOKEN", "COPILOT_GITHUB_TOKEN", "GH_TOKEN"];
const URL_WITH_PASSWORD = /^[a-z][a-z0-9+.-]*:\/\/[^\s/:@]*:([^\s/]+)@/i;

/**
 * Returns the secret values of an environment: of variables that are named like a secret or are listed, and the
 * passwords in URLs of any variable.
 */
export function secretValuesOf(
  environment: Readonly<Record<string, string | undefined>>,
  extraNames: Iterable<string> = [],
): SecretValue[] {
  const listed = new Set([...ALWAYS_SECRET, ...extraNames]);
  return Object.entries(environment).flatMap(([name, value]) => {
    if (value === undefined || value === "") return [];
    const password = URL_WITH_PASSWORD.exec(value)?.[1];
    const found = password === undefined ? [] : [{ name, value: password }];
    if (listed.has(name) || looksSecret(name)) found.push({ name, value });
    return found;
  });
}

/** True for values that also appear in ordinary text: redacting them would do harm and hide nothing. */
export function isOrdinary(value: string): boolean {
  if (value.length < MIN_LENGTH || new Set(value).size < 4) return true;
  if (value.length < 20 && /^[A-Za-z]+(?:[ ._/:-][A-Za-z]+)*$/.test(value)) return true;
  if (value.length < 16 && /^[0-9.,:/ T_-]+Z?$/.test(value)) return true;
  if ("0123456789".repeat(3).includes(value) || "abcdefghijklmnopqrstuvwxyz".includes(value.toLowerCase())) return true;
  if (/^(?:~|\.{1,2}|[A-Za-z]:)?[\\/]/.test(value) && !/[+=]/.test(value)) {
    return value.split(/[\\/]/).every((segment) => segment.length < 24);
  }
  return /^[a-z][a-z0-9+.-]*:\/\/[^@]*$/i.test(value) && value.length < 100 && !/[?=]/.test(value);
}

/** Whether there is a searchable form of this value. */
export function isFindable(value: string): boolean {
  return partsOf(value).length > 0;
}

function partsOf(value: string): string[] {
  const whole = value.trim().slice(0, MAX_VALUE);
  const lines = whole.includes("\n") ? whole.split(/\r?\n/).map((line) => line.trim()) : [];
  const parts = [whole, ...lines.filter((line) => line.length >= MIN_LINE && !line.startsWith("-----"))];
  return parts.flatMap(pieces).filter((part) => !isOrdinary(part));
}

/**
 * Returns all forms to search for; none for an ordinary value. `usual` omits the rarer encodings, which can only occur
 * in a text that `mayHoldRareForm`.
 */
export function needlesOf(value: string, forms: "usual" | "all"): Needle[] {
  const needles = new Map<string, Needle>();
  for (const part of partsOf(value)) {
    const found = forms === "all" ? [...usualForms(part), ...rareForms(part)] : usualForms(part);
    for (const needle of found) if (needle.text.length >= MIN_LENGTH) needles.set(needle.text, needle);
  }
  return [...needles.values()];
}

/** Escapes of any kind, separated bytes, or a run of letters and digits that is long enough for base64 or base32. */
const RARE_FORM =
  /\\[ux]|%(?:25|u)|&#|=[0-9A-Fa-f]{2}|[0-9A-Fa-f]{2}[ :-][0-9A-Fa-f]{2}[ :-]|0x[0-9A-Fa-f]{2},|(?:%[0-9A-Fa-f]{2}){4}|[A-Z2-7]{12}|[A-Za-z0-9+]{16}/;

export function mayHoldRareForm(text: string): boolean {
  return RARE_FORM.test(text);
}

function pieces(value: string): string[] {
  const count = Math.ceil(value.length / PIECE);
  return Array.from({ length: count }, (_, index) => value.slice(index * PIECE, (index + 1) * PIECE));
}

function usualForms(value: string): Needle[] {
  const json = JSON.stringify(value).slice(1, -1);
  const ascii = json.replace(/[\u0080-\uffff]/g, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`);
  const html = value.replace(/[&<>"']/g, (sign) => HTML[sign] ?? sign);
  const plain = [
    value,
    [...value].reverse().join(""),
    json,
    JSON.stringify(json).slice(1, -1),
    ascii,
    json.replaceAll("/", "\\/"),
    ...urlForms(value).flatMap((form) => [form, lowerEscapes(form), form.replaceAll("%20", "+")]),
    html,
  ];
  const bytes = new TextEncoder().encode(value);
  return [...plain.map(exactly), ...base64Forms(bytes), { text: hex(bytes), anyCase: true, encoded: false }];
}

function rareForms(value: string): Needle[] {
  const bytes = new TextEncoder().encode(value);
  const twice = urlForms(value).flatMap((form) => [form, lowerEscapes(form)].map((one) => one.replaceAll("%", "%25")));
  return [
    ...[...twice, quotedPrintable(value)].map(exactly),
    ...base64Forms(utf16(value, "little")),
    ...base64Forms(utf16(value, "big")),
    ...anyCaseForms(value, bytes).map((text) => ({ text: text.toLowerCase(), anyCase: true, encoded: false })),
  ];
}

const exactly = (text: string): Needle => ({ text, anyCase: false, encoded: false });

function urlForms(value: string): string[] {
  const url = encodeURIComponent(value.replace(/[\ud800-\udfff]/gu, "\ufffd"));
  const strict = url.replace(/[!'()*~]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`);
  return [url, strict];
}

function base64Forms(bytes: Uint8Array): Needle[] {
  return [0, 1, 2]
    .map((offset) => base64At(bytes, offset))
    .flatMap((text) => [text, text.replaceAll("+", "-").replaceAll("/", "_")])
    .map((text) => ({ text, anyCase: false, encoded: true }));
}

/** Returns the forms in which every character or byte is escaped. */
function anyCaseForms(value: string, bytes: Uint8Array): string[] {
  const units = Array.from({ length: value.length }, (_, index) => value.charCodeAt(index));
  const pairs = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0"));
  const four = units.map((unit) => unit.toString(16).padStart(4, "0"));
  return [
    ...[" ", ":", "-", ",0x"].map((between) => pairs.join(between)),
    ...["%", "%25", "\\x", "="].map((before) => pairs.map((pair) => before + pair).join("")),
    ...["\\u", "\\\\u", "%u"].map((before) => four.map((digits) => before + digits).join("")),
    units.map((unit) => `\\u{${unit.toString(16)}}`).join(""),
    units.map((unit) => `&#${unit};`).join(""),
    units.map((unit) => `&#x${unit.toString(16)};`).join(""),
    hex(utf16(value, "little")),
    hex(utf16(value, "big")),
    ...[0, 1, 2, 3, 4].map((offset) => base32At(bytes, offset)),
  ];
}

function quotedPrintable(value: string): string {
  const escaped = (byte: number): string => `=${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  return Array.from(new TextEncoder().encode(value), (byte) =>
    byte === 0x3d || byte < 0x20 || byte > 0x7e ? escaped(byte) : String.fromCharCode(byte),
  ).join("");
}

function utf16(value: string, order: "little" | "big"): Uint8Array {
  const view = new DataView(new ArrayBuffer(value.length * 2));
  for (let at = 0; at < value.length; at++) view.setUint16(at * 2, value.charCodeAt(at), order === "little");
  return new Uint8Array(view.buffer);
}

const HTML: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

const lowerEscapes = (text: string): string => text.replace(/%[0-9A-F]{2}/g, (sign) => sign.toLowerCase());

/** Returns the characters that do not depend on the surrounding bytes, if the bytes begin `offset` into a group. */
function base64At(bytes: Uint8Array, offset: number): string {
  const shifted = String.fromCharCode(...new Uint8Array(offset), ...bytes);
  const first = [0, 2, 3][offset] ?? 0;
  return btoa(shifted).slice(first, Math.floor(((bytes.length + offset) * 8) / 6));
}

function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

const BASE32 = "abcdefghijklmnopqrstuvwxyz234567";

/**
 * Returns the letters and digits of a value in every form, in lower case: how it could be hidden in a host name or a
 * path.
 */
export function squeezedForms(value: string): string[] {
  if (isOrdinary(value.trim())) return [];
  const bytes = new TextEncoder().encode(value.trim().slice(0, PIECE));
  const forms = [
    value,
    [...value].reverse().join(""),
    hex(bytes),
    ...[0, 1, 2].map((offset) => base64At(bytes, offset)),
    ...[0, 1, 2, 3, 4].map((offset) => base32At(bytes, offset)),
  ];
  return [...new Set(forms.map(squeezed))].filter((form) => form.length >= MIN_LENGTH);
}

export function squeezed(text: string): string {
  return text.toLowerCase().replace(/[^a-z0-9]/g, "");
}

function base32At(bytes: Uint8Array, offset: number): string {
  const bits = [...new Uint8Array(offset), ...bytes].map((byte) => byte.toString(2).padStart(8, "0")).join("");
  const groups = bits.match(/.{5}/g) ?? [];
  return groups
    .map((group) => BASE32[Number.parseInt(group, 2)] ?? "")
    .slice(Math.ceil((offset * 8) / 5))
    .join("");
}
