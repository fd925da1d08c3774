/** What a call wants to do, in the words of the permission rules and of the wire's permission requests. */
export type Access =
  | { readonly kind: "read"; readonly path: string; readonly intention?: string }
  | {
      readonly kind: "write";
      readonly path: string;
      readonly intention: string;
      /** What would change, as a unified diff, bounded. */
      readonly diff: string;
    }
  | { readonly kind: "shell"; readonly command: string; readonly cwd: string; readonly intention: string }
  | { readonly kind: "url"; readonly url: string; readonly intention: string };
