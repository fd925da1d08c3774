import { createHash, timingSafeEqual } from "node:crypto";

/** Compares secrets in a time that does not depend on where, or by how much, they differ. */
export function isSameSecret(given: string, wanted: string): boolean {
  const digest = (text: string): Buffer => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(given), digest(wanted));
}
