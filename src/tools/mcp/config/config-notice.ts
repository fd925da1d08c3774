/** A problem at one position of a configuration, for the user. */
export interface McpNotice {
  readonly source: string;
  readonly server?: string;
  readonly field?: string;
  readonly message: string;
}

export function noticeText({ source, server, field, message }: McpNotice): string {
  const position = [...(server === undefined ? [] : [`server ${server}`]), ...(field === undefined ? [] : [field])];
  return [source, ...(position.length === 0 ? [] : [position.join(".")]), message].join(": ");
}
