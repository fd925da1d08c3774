/**
 * The token of this tab. The login puts it behind the `#` of the address; it is kept in the storage of the tab, which no
 * other port can read. Tabs of this origin pass it on: a new tab asks, and one that was refused takes that of a new login.
 */

const KEY = "token";
const PLACE = /^#token=([\w.-]+)$/;

interface TokenMessage {
  /** Undefined: the sender asks for one. */
  readonly token?: string;
}

/** Call before anything is asked of the server. */
export function takeTokenFromAddress(): void {
  const token = PLACE.exec(location.hash)?.[1];
  if (token === undefined) return;
  sessionStorage.setItem(KEY, token);
  history.replaceState(null, "", "#/");
}

export function tokenHeaders(): Record<string, string> {
  return { "x-troupe-token": sessionStorage.getItem(KEY) ?? "" };
}

/** Passes the token between tabs. `isValid` says if the server took that of this tab; `listener` is called with a new one. */
export function shareToken(isValid: () => boolean, listener: () => void): { offer(): void; ask(): void } {
  const channel = new BroadcastChannel("troupe-token");
  const offer = (): void => {
    const token = sessionStorage.getItem(KEY);
    if (token !== null && isValid()) channel.postMessage({ token } satisfies TokenMessage);
  };
  channel.onmessage = ({ data }: MessageEvent<TokenMessage>) => {
    if (data.token === undefined) return offer();
    if (isValid() || data.token === sessionStorage.getItem(KEY)) return;
    sessionStorage.setItem(KEY, data.token);
    listener();
  };
  return { offer, ask: () => channel.postMessage({} satisfies TokenMessage) };
}
