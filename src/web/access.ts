/**
 * Decides which requests the server accepts. The printed address holds a code that works once. It is exchanged for a cookie and a token,
 * and a request needs both: browsers send cookies to every port of a host, while the token is kept by the page's origin,
 * which has the port in it. Both end with the process, because their key is in its memory only. Requests of other sites are
 * refused whatever they carry: `Host` must be a loopback name with this port, and what changes something must name this origin.
 */

import { createHmac, randomBytes } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { isSameSecret } from "../lib/node/same-secret.ts";

export interface AccessRefusal {
  readonly status: number;
  readonly message: string;
}

export interface Login {
  /** The `Set-Cookie` line. */
  readonly cookie: string;
  readonly token: string;
}

const CODE_MS = 10 * 60_000;
const MAX_CODES = 16;
const TOKEN_HEADER = "x-troupe-token";

export class PageAccess {
  /** Never stored: whoever takes the port after this process can use nothing that pages send there. */
  readonly #secret: Uint8Array = randomBytes(32);
  readonly #port: number;
  readonly #codes = new Map<string, number>();

  constructor(port: number) {
    this.#port = port;
  }

  /** Returns a new code. It works once, within ten minutes. */
  newCode(): string {
    const code = randomBytes(24).toString("base64url");
    this.#codes.set(code, Date.now() + CODE_MS);
    if (this.#codes.size > MAX_CODES) this.#codes.delete([...this.#codes.keys()][0] ?? "");
    return code;
  }

  /** Returns a cookie and a token for a valid code, which is used up by it. */
  exchange(code: string): Login | undefined {
    for (const [known, until] of this.#codes) {
      if (!isSameSecret(known, code)) continue;
      this.#codes.delete(known);
      if (until < Date.now()) return undefined;
      const cookie = `${this.#name}=${this.#issue("cookie")}; Path=/; HttpOnly; SameSite=Strict`;
      return { cookie, token: this.#issue("token") };
    }
    return undefined;
  }

  /** Returns why the request is refused, whatever it asks for. */
  refusal(headers: IncomingHttpHeaders): AccessRefusal | undefined {
    if (!this.#hosts.has(headers.host ?? "")) {
      return { status: 421, message: "This server answers only to its own loopback address." };
    }
    const { origin } = headers;
    if (origin !== undefined && !this.#origins.has(origin)) return foreign;
    // The page has no workers: another program left one on this port, and it must see nothing of ours.
    if (headers["service-worker"] !== undefined) return foreign;
    const site = headers["sec-fetch-site"];
    if (site !== undefined && site !== "same-origin" && site !== "none") return foreign;
    return undefined;
  }

  /**
   * Whether another site or a file leads the whole tab here. A file of ours opens the login so. What answers it must have
   * no effect.
   */
  isLedHere(headers: IncomingHttpHeaders): boolean {
    const { host, origin } = headers;
    const isVisit = headers["sec-fetch-mode"] === "navigate" && headers["sec-fetch-dest"] === "document";
    return isVisit && origin === undefined && this.#hosts.has(host ?? "");
  }

  /** Whether a script asks for the login. Only a tab that goes there may log in. */
  isScripted(headers: IncomingHttpHeaders): boolean {
    const dest = headers["sec-fetch-dest"];
    return dest !== undefined && dest !== "document";
  }

  /** Returns why a request that changes something is refused. */
  changeRefusal(headers: IncomingHttpHeaders): AccessRefusal | undefined {
    if (headers.origin === undefined || headers["sec-fetch-site"] === "none") return foreign;
    const type = headers["content-type"]?.split(";")[0]?.trim().toLowerCase();
    if (type !== "application/json") return { status: 415, message: "Send application/json." };
    return undefined;
  }

  /** Whether the request carries a cookie and a token of this server. */
  isKnown(headers: IncomingHttpHeaders): boolean {
    if (!this.#isIssued("token", String(headers[TOKEN_HEADER] ?? ""))) return false;
    const cookies = (headers.cookie ?? "").split(";").map((part) => part.trim());
    return cookies.some((cookie) => {
      return cookie.startsWith(`${this.#name}=`) && this.#isIssued("cookie", cookie.slice(this.#name.length + 1));
    });
  }

  get #name(): string {
    return `troupe-${this.#port}`;
  }

  get #hosts(): ReadonlySet<string> {
    return new Set(["127.0.0.1", "localhost", "[::1]"].map((host) => `${host}:${this.#port}`));
  }

  get #origins(): ReadonlySet<string> {
    return new Set([...this.#hosts].map((host) => `http://${host}`));
  }

  #issue(kind: "cookie" | "token"): string {
    const id = randomBytes(18).toString("base64url");
    return `${id}.${this.#sign(kind, id)}`;
  }

  #isIssued(kind: "cookie" | "token", value: string): boolean {
    const [id = "", signature = ""] = value.split(".");
    return isSameSecret(this.#sign(kind, id), signature);
  }

  #sign(kind: "cookie" | "token", id: string): string {
    return createHmac("sha256", this.#secret).update(`${kind}|${id}`).digest("base64url");
  }
}

const foreign: AccessRefusal = { status: 403, message: "Requests of other sites are refused." };
