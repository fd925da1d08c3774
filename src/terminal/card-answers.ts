/** Turns the keys of a card, and the words that were typed for it, into answers of the contract. */
import type { AttentionItem } from "../view/view.ts";
import type { CardAnswer } from "./attention.ts";
import type { Host } from "./host.ts";
import { Pager } from "./overlays/pager.ts";
import { mainTarget, type Target } from "./prompt-target.ts";
import { safe } from "./screen/safe.ts";

export function answerCard(app: Host, answer: CardAnswer): void {
  const item = app.attention.current;
  if (!item) return;
  switch (answer.kind) {
    case "approve":
      settle(app, app.session?.decide(item, approval(item, answer.how)));
      return;
    case "deny":
      deny(app, item);
      return;
    case "choice":
      choose(app, item, answer.index);
      return;
    case "words":
      app.aim(
        item.kind === "question"
          ? { kind: "answer", label: "answer ›", draft: "", item }
          : { kind: "feedback", label: "why not ›", draft: "", item },
      );
      return;
    case "fill":
      fill(app, item);
      return;
    case "view":
      app.openOverlay(new Pager({ title: item.title, style: app.style, lines: () => safe(item.text).split("\n") }));
      return;
    case "open-agent":
      if (item.agentId !== undefined) app.commands.openAgent(item.agentId);
  }
}

/** Sends what was typed for a request. Returns false when the prompt is for the main agent. */
export function answerWords(app: Host, target: Target, text: string): boolean {
  switch (target.kind) {
    case "feedback":
      app.aim(mainTarget);
      if (target.item.kind === "plan")
        settle(app, app.session?.answerPlan(target.item, { approved: false, feedback: text }));
      else settle(app, app.session?.decide(target.item, { kind: "reject", feedback: text }));
      return true;
    case "answer":
      app.aim(mainTarget);
      settle(app, app.session?.answerQuestion(target.item, text, true));
      return true;
    case "field":
      nextField(app, target, text);
      return true;
    default:
      return false;
  }
}

/** The decision for an approval, once or for longer. */
export function approval(item: AttentionItem, how: "once" | "session" | "always"): Readonly<Record<string, unknown>> {
  if (how === "once") return { kind: "approve-once" };
  if (how === "session") return { kind: "approve-for-session" };
  const asked = item.request?.type === "permission.requested" ? item.request.data.permissionRequest : undefined;
  return { kind: "approve-permanently", ...(asked?.kind === "url" && { domain: new URL(asked.url).host }) };
}

function deny(app: Host, item: AttentionItem): void {
  if (item.kind === "plan") settle(app, app.session?.answerPlan(item, { approved: false }));
  else if (item.kind === "elicitation") settle(app, app.session?.answerForm(item, { action: "decline" }));
  else settle(app, app.session?.decide(item, { kind: "reject" }));
}

function choose(app: Host, item: AttentionItem, index: number): void {
  const choice = item.choices[index];
  if (choice === undefined || app.attention.answerLocal(item, index, app.view)) return;
  if (item.kind === "plan") settle(app, app.session?.answerPlan(item, { approved: true, selectedAction: choice }));
  else if (item.kind === "question") settle(app, app.session?.answerQuestion(item, choice, false));
}

interface Property {
  readonly type?: string;
  readonly title?: string;
  readonly description?: string;
  readonly enum?: readonly unknown[];
}

/** Asks for the fields of a form one after the other. An address is shown; the user opens it. */
function fill(app: Host, item: AttentionItem): void {
  const { request } = item;
  if (request?.type !== "elicitation.requested") return;
  const names = Object.keys(request.data.requestedSchema?.properties ?? {});
  if (names.length === 0) settle(app, app.session?.answerForm(item, { action: "accept", content: {} }));
  else app.aim({ kind: "field", label: labelOf(item, names[0] ?? ""), draft: "", item, names, content: {} });
}

function nextField(app: Host, target: Extract<Target, { kind: "field" }>, text: string): void {
  const { item, names } = target;
  const [name = "", ...rest] = names;
  const value = fieldValue(propertyOf(item, name), text);
  if (value === undefined) {
    app.hint(`${name}: this is no ${propertyOf(item, name).type ?? "valid value"}`);
    return;
  }
  const content = { ...target.content, ...(text !== "" && { [name]: value }) };
  const [next] = rest;
  if (next === undefined) {
    app.aim(mainTarget);
    settle(app, app.session?.answerForm(item, { action: "accept", content }));
    return;
  }
  app.target = { ...target, label: labelOf(item, next), names: rest, content };
}

function propertyOf({ request }: AttentionItem, name: string): Property {
  const properties = request?.type === "elicitation.requested" ? request.data.requestedSchema?.properties : undefined;
  return (properties?.[name] ?? {}) as Property;
}

function labelOf(item: AttentionItem, name: string): string {
  const { title, enum: values } = propertyOf(item, name);
  const options = values ? ` (${values.join(", ")})` : "";
  return `${safe(title ?? name).slice(0, 40)}${safe(options).slice(0, 60)} ›`;
}

/** Undefined when the text is no value of the field's type. */
function fieldValue({ type, enum: values }: Property, text: string): unknown {
  if (text === "") return "";
  if (values && !values.map(String).includes(text)) return undefined;
  switch (type) {
    case "number":
    case "integer": {
      const value = Number(text);
      return Number.isFinite(value) && (type === "number" || Number.isInteger(value)) ? value : undefined;
    }
    case "boolean":
      if (/^(y|yes|true)$/i.test(text)) return true;
      return /^(n|no|false)$/i.test(text) ? false : undefined;
    default:
      return text;
  }
}

/** An answer that came too late is said; the card closes by the event in any case. */
function settle(app: Host, answered: Promise<boolean> | undefined): void {
  answered?.then(
    (wasFirst) => {
      if (!wasFirst) app.hint("it was answered elsewhere");
    },
    (error: unknown) => app.fail(error),
  );
}
