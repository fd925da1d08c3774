/** Asks for the fields of a form in plain mode: one field after the other, choices as a numbered menu. */
import { chosenValue, type FormField, fieldAnswer, fieldMenu, formFields } from "../lib/form-fields.ts";
import type { AttentionItem } from "../view/view.ts";

/**
 * Resolves with false if the request was answered elsewhere, with a question if more is needed, or with `back` if the
 * menu of the request is wanted again.
 */
export type PlainAnswer = Promise<boolean | "back" | PlainQuestion>;

/** Lines that ask for one line of text. */
export interface PlainQuestion {
  readonly lines: readonly string[];
  answer(text: string): PlainAnswer;
}

type Send = (result: Readonly<Record<string, unknown>>) => Promise<boolean>;

const HELP =
  "An empty line takes the default or leaves the field out. /back returns to the field before, /decline declines, /cancel dismisses the form.";

/** Returns the question for the first field, or sends a form that has none. */
export async function formQuestion({ request }: AttentionItem, send: Send): PlainAnswer {
  const fields = formFields(request?.type === "elicitation.requested" ? request.data.requestedSchema : undefined);
  const question = fieldQuestion({ fields, send }, []);
  if (question === undefined) return send({ action: "accept", content: {} });
  return { ...question, lines: [HELP, ...question.lines] };
}

interface Form {
  readonly fields: readonly FormField[];
  readonly send: Send;
}

/** Name and value of each field that was asked; undefined: left out. */
type Given = readonly (readonly [name: string, value: unknown])[];

function fieldQuestion(form: Form, given: Given): PlainQuestion | undefined {
  const { fields, send } = form;
  const field = fields[given.length];
  if (!field) return undefined;
  const menu = fieldMenu(field);
  const lines = [
    `field ${given.length + 1} of ${fields.length}: ${field.label} (${field.hint})`,
    ...menu.map(({ label }, index) => `  ${index + 1}. ${label}`),
  ];
  const answer = async (text: string): PlainAnswer => {
    if (text === "/decline" || text === "/cancel") return send({ action: text.slice(1) });
    if (text === "/back") return (given.length > 0 && fieldQuestion(form, given.slice(0, -1))) || "back";
    const answered = fieldAnswer(field, chosenValue(field, text));
    if (answered.kind === "problem") return { lines: [`That does not fit: ${answered.problem}.`, ...lines], answer };
    const all: Given = [...given, [field.name, answered.kind === "value" ? answered.value : undefined]];
    const content = Object.fromEntries(all.filter(([, value]) => value !== undefined));
    return fieldQuestion(form, all) ?? send({ action: "accept", content });
  };
  return { lines, answer };
}
