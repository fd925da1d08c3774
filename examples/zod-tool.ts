/** A tool of our own. zod checks the arguments of the model and gives the handler its types. */
import { approveAll, createClient, defineTool } from "troupe/sdk";
import { calls, modelServer, says } from "troupe/testing";
import * as z from "zod";

const stock: Readonly<Record<string, number>> = { apple: 12, pear: 0 };

const inStock = defineTool("in_stock", {
  description: "Returns how many items of a product are in stock.",
  parameters: z.object({ product: z.string().min(1) }),
  // `product` is a string here. Arguments that do not fit never reach the handler.
  handler: ({ product }) => ({ product, count: stock[product] ?? 0 }),
  // The tool only reads, so no permission is needed.
  skipPermission: true,
});

// The scripted model first calls the tool with a wrong argument, then with a right one.
await using model = await modelServer({
  steps: [calls(["in_stock", { product: 7 }]), calls(["in_stock", { product: "apple" }]), says("There are 12 apples.")],
});

await using client = await createClient();
const session = await client.createSession({
  provider: { baseUrl: model.baseUrl, modelId: "scripted" },
  tools: [inStock],
  onPermissionRequest: approveAll,
});
session.on("tool.execution_complete", ({ data }) => {
  console.log(data.success ? `result: ${data.result?.content}` : `refused: ${data.error?.message}`);
});

const answer = await session.sendAndWait("How many apples are there?");
console.log(answer?.data.content);
