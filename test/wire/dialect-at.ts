import { chatDialectAt } from "../../src/model/chat-dialect.ts";
import { providerList } from "../../src/model/providers/list.ts";

/** The part of an endpoint that the built-in providers say about this address. */
export const dialectAt = (baseUrl: string) => {
  const chatDialect = chatDialectAt(
    baseUrl,
    providerList.flatMap((provider) => provider.chatDialect ?? []),
  );
  return chatDialect ? { chatDialect } : {};
};
