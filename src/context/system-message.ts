/** The host program's options for the system prompt. */
import * as z from "zod";

const SectionOverride = z.object({
  action: z.enum(["replace", "remove", "append", "prepend", "preserve", "transform"]),
  content: z.string().exactOptional(),
});
export type SectionOverride = z.infer<typeof SectionOverride>;

export const SystemMessageConfig = z.union([
  z.object({ mode: z.literal("replace"), content: z.string() }),
  z.object({
    mode: z.literal("customize"),
    sections: z.record(z.string(), SectionOverride).exactOptional(),
    content: z.string().exactOptional(),
  }),
  z.object({ mode: z.literal("append").exactOptional(), content: z.string().exactOptional() }),
]);
export type SystemMessageConfig = z.infer<typeof SystemMessageConfig>;
