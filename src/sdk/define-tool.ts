import * as z from "zod";
import type { Json } from "../lib/json.ts";

/** Context that a handler receives beside its arguments. */
export interface ToolInvocation {
  readonly sessionId: string;
  readonly toolCallId: string;
  readonly toolName: string;
  /** The model's arguments, before validation. */
  readonly arguments: unknown;
}

/** The full form of a tool result. A plain string or any JSON value counts as success. */
export interface ToolResultObject {
  readonly textResultForLlm: string;
  readonly resultType: "success" | "failure" | "rejected" | "denied" | "timeout";
  readonly error?: string;
  readonly sessionLog?: string;
  readonly binaryResultsForLlm?: readonly {
    readonly data: string;
    readonly mimeType: string;
    readonly type: "image" | "resource";
    readonly description?: string;
  }[];
  readonly toolTelemetry?: Readonly<Record<string, unknown>>;
}

/** A tool that this program runs and that every agent of its session may use. */
export interface ClientTool {
  readonly name: string;
  readonly description?: string;
  /** JSON schema of the arguments, as the model sees it. */
  readonly parameters?: Readonly<Record<string, unknown>>;
  readonly overridesBuiltInTool?: boolean;
  /** True: it runs without a permission request. */
  readonly skipPermission?: boolean;
  /** True: a success ends the answer without another model call. */
  readonly isTerminal?: boolean;
  /**
   * Validates the arguments, then runs the tool. If it throws, the model receives a failure without the error's text.
   */
  run(args: unknown, invocation: ToolInvocation): Promise<string | ToolResultObject>;
}

interface ToolDefinition<P> {
  readonly description?: string;
  /** A zod schema, which validates and types the arguments, or a JSON schema, which is only shown to the model. */
  readonly parameters?: P;
  readonly handler: (
    args: P extends z.ZodType ? z.infer<P> : never,
    invocation: ToolInvocation,
  ) => unknown | Promise<unknown>;
  readonly overridesBuiltInTool?: boolean;
  readonly skipPermission?: boolean;
  readonly isTerminal?: boolean;
}

/** Defines a tool from a schema and a handler whose arguments have the schema's type. */
export function defineTool<P extends z.ZodType>(name: string, definition: ToolDefinition<P>): ClientTool;
/** Defines a tool with a JSON schema, or none. The handler declares the type that it expects. */
export function defineTool<T = unknown>(
  name: string,
  definition: Omit<ToolDefinition<never>, "parameters" | "handler"> & {
    readonly parameters?: Readonly<Record<string, unknown>>;
    readonly handler: (args: T, invocation: ToolInvocation) => unknown | Promise<unknown>;
  },
): ClientTool;
export function defineTool(
  name: string,
  definition: Omit<ToolDefinition<never>, "parameters" | "handler"> & {
    readonly parameters?: z.ZodType | Readonly<Record<string, unknown>>;
    readonly handler: (args: never, invocation: ToolInvocation) => unknown | Promise<unknown>;
  },
): ClientTool {
  const { parameters, handler, ...rest } = definition;
  const schema = isZod(parameters) ? parameters : undefined;
  return {
    name,
    ...rest,
    ...(parameters !== undefined && { parameters: schema ? jsonSchemaOf(schema) : { ...parameters } }),
    async run(args, invocation) {
      const checked = schema?.safeParse(args ?? {});
      if (checked && !checked.success) return invalid(name, checked.error);
      return resultOf(await handler((checked ? checked.data : args) as never, invocation));
    },
  };
}

const isZod = (value: unknown): value is z.ZodType => value instanceof z.ZodType;

function jsonSchemaOf(schema: z.ZodType): Record<string, unknown> {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: "input" });
  return rest;
}

function invalid(name: string, error: z.ZodError): ToolResultObject {
  const text = `The arguments of ${name} do not fit its schema:\n${z.prettifyError(error)}`;
  return { textResultForLlm: text, resultType: "failure", error: text };
}

/** Converts a handler's return value to the form of the wire. */
function resultOf(value: unknown): string | ToolResultObject {
  if (typeof value === "string") return value;
  if (value === undefined || value === null) return "";
  if (isResult(value)) return value;
  return JSON.stringify(value satisfies unknown as Json);
}

function isResult(value: unknown): value is ToolResultObject {
  if (typeof value !== "object" || value === null) return false;
  return "textResultForLlm" in value && "resultType" in value && typeof value.textResultForLlm === "string";
}
