/** What a call wants to touch, in the words of the permission rules and of the wire. */
export type Access =
  | { kind: "read"; path: string }
  | { kind: "write"; path: string }
  | { kind: "shell"; command: string }
  | { kind: "url"; url: string };
