/**
 * Who may talk to the server. The printed address holds a code that works once; it is exchanged for a cookie that is bound
 * to the port, because browsers send cookies to every port of a host. Requests of other sites are refused whatever they
 * carry: `Host` must be a loopback name with this port, and what changes something must name this origin.
 */
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";

export interface Refusal {
  readonly status: number;
  readonly message: string;
}

const CODE_MS = 10 * 60_000;
const COOKIE_MS = 30 * 24 * 60 * 60_000;
const MAX_CODES = 16;

export class Access {
  readonly #secret: Uint8Array;
  readonly #port: number;
  readonly #codes = new Map<string, number>();

  /** `secret`: the same after a restart, so that open pages reconnect. */
  constructor(secret: Uint8Array, port: number) {
    this.#secret = secret;
    this.#port = port;
  }

  /** Returns a new code. It works once, within ten minutes. */
  newCode(): string {
    const code = randomBytes(24).toString("base64url");
    this.#codes.set(code, Date.now() + CODE_MS);
    if (this.#codes.size > MAX_CODES) this.#codes.delete([...this.#codes.keys()][0] ?? "");
    return code;
  }

  /** Returns the `Set-Cookie` line for a valid code, which is used up by it. */
  exchange(code: string): string | undefined {
    for (const [known, until] of this.#codes) {
      if (!isSame(known, code)) continue;
      this.#codes.delete(known);
      if (until < Date.now()) return undefined;
      const content = `${randomBytes(18).toString("base64url")}.${Date.now() + COOKIE_MS}`;
      const value = `${content}.${this.#sign(content)}`;
      return `${this.#name}=${value}; Path=/; HttpOnly; SameSite=Strict; Max-Age=${COOKIE_MS / 1000}`;
    }
    return undefined;
  }

  /** Returns why the request is refused, whatever it asks for. */
  refusal(headers: IncomingHttpHeaders): Refusal | undefined {
    if (!this.#hosts.has(headers.host ?? "")) {
      return { status: 421, message: "This server answers only to its own loopback address." };
    }
    const { origin } = headers;
    if (origin !== undefined && !this.#origins.has(origin)) return foreign;
    const site = headers["sec-fetch-site"];
    if (site !== undefined && site !== "same-origin" && site !== "none") return foreign;
    return undefined;
  }

  /** Returns why a request that changes something is refused. */
  changeRefusal(headers: IncomingHttpHeaders): Refusal | undefined {
    if (headers.origin === undefined || headers["sec-fetch-site"] === "none") return foreign;
    const type = headers["content-type"]?.split(";")[0]?.trim().toLowerCase();
    if (type !== "application/json") return { status: 415, message: "Send application/json." };
    return undefined;
  }

  /** Whether the request carries a cookie of this server. */
  isKnown(headers: IncomingHttpHeaders): boolean {
    const cookies = (headers.cookie ?? "").split(";").map((part) => part.trim());
    return cookies.some((cookie) => {
      if (!cookie.startsWith(`${this.#name}=`)) return false;
      const [id = "", expires = "", signature = ""] = cookie.slice(this.#name.length + 1).split(".");
      return isSame(this.#sign(`${id}.${expires}`), signature) && Number(expires) > Date.now();
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

  #sign(content: string): string {
    return createHmac("sha256", this.#secret).update(`${this.#port}|${content}`).digest("base64url");
  }
}

const foreign: Refusal = { status: 403, message: "Requests of other sites are refused." };

/** Takes the same time wherever they differ. */
function isSame(one: string, other: string): boolean {
  const digest = (text: string): Uint8Array => createHmac("sha256", "compare").update(text).digest();
  return timingSafeEqual(digest(one), digest(other));
}
