import * as z from "zod";

const index = z.number();

const Location = z.discriminatedUnion("type", [
  z.object({ type: z.literal("char"), startIndex: index, endIndex: index }),
  z.object({ type: z.literal("page"), startPage: index, endPage: index }),
  z.object({ type: z.literal("block"), startBlock: index, endBlock: index }),
]);

/** The sources of an answer: parts of its text, each with the passages that support it. */
export const Citations = z.object({
  sources: z.array(
    z.object({
      id: z.string(),
      provider: z.enum(["anthropic", "openai", "client"]),
      title: z.string().exactOptional(),
      url: z.string().exactOptional(),
    }),
  ),
  spans: z.array(
    z.object({
      startIndex: index,
      endIndex: index,
      references: z.array(
        z.object({
          sourceId: z.string(),
          citedText: z.string().exactOptional(),
          location: Location.exactOptional(),
        }),
      ),
    }),
  ),
});
export type Citations = z.infer<typeof Citations>;
