/** Fields of forms and answers, and the form of an MCP server. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { isObject } from "../../../lib/json.ts";
import { sanitise } from "../../../lib/text.ts";
import type { AttentionItem } from "../../../view/view.ts";

type Property = Readonly<Record<string, unknown>>;
type Content = Readonly<Record<string, unknown>>;

export interface FormProps {
  readonly item: AttentionItem;
  readonly isBusy: boolean;
  onAnswer(result: Content): void;
}

export function FormFields({ item, isBusy, onAnswer }: FormProps): JSX.Element {
  const asked = item.request?.type === "elicitation.requested" ? item.request.data : undefined;
  const { properties = {}, required = [] } = asked?.requestedSchema ?? {};
  const fields = Object.entries(properties).map(
    ([name, property]) => [name, isObject(property) ? property : {}] as const,
  );
  const [content, setContent] = useState<Content>(() => defaultsOf(fields));
  const isWhole = required.every((name) => content[name] !== undefined && content[name] !== "");
  return (
    <form
      class="answers form"
      onSubmit={(event) => {
        event.preventDefault();
        onAnswer({ action: "accept", ...(asked?.mode !== "url" && { content }) });
      }}
    >
      {asked?.mode === "url" && <OutsideLink address={asked.url ?? ""} />}
      {fields.map(([name, property]) => (
        <FormField
          key={name}
          {...{ name, property }}
          isRequired={required.includes(name)}
          value={content[name]}
          onChange={(value) => setContent(withValue(content, name, value))}
        />
      ))}
      <button type="submit" class="primary" disabled={isBusy || !isWhole}>
        {asked?.mode === "url" ? "Done" : "Send"}
      </button>
      <button
        type="button"
        class="danger"
        data-answer="no"
        disabled={isBusy}
        onClick={() => onAnswer({ action: "decline" })}
      >
        Decline
      </button>
    </form>
  );
}

/** An address of others, shown whole. It is a link only if it leads to http or https. */
export function OutsideLink({ address }: { readonly address: string }): JSX.Element {
  const shown = sanitise(address);
  if (!/^https?:\/\/\S+$/i.test(address)) return <code>{shown}</code>;
  return (
    <a class="outside" href={address} target="_blank" rel="noopener noreferrer">
      Open {shown}
    </a>
  );
}

function defaultsOf(fields: readonly (readonly [string, Property])[]): Content {
  return Object.fromEntries(fields.flatMap(([name, { default: one }]) => (one === undefined ? [] : [[name, one]])));
}

/** A field that is left empty is not sent. */
function withValue(content: Content, name: string, value: unknown): Content {
  const { [name]: _, ...others } = content;
  return value === undefined || value === "" ? others : { ...others, [name]: value };
}

interface FormFieldProps {
  readonly name: string;
  readonly property: Property;
  readonly isRequired: boolean;
  readonly value: unknown;
  onChange(value: unknown): void;
}

function FormField({ name, property, isRequired, value, onChange }: FormFieldProps): JSX.Element {
  const label = sanitise(typeof property.title === "string" ? property.title : name);
  const { description } = property;
  return (
    <div class="field">
      <span>
        {label}
        {isRequired ? "" : " (optional)"}
      </span>
      <Field {...{ label, property, value, onChange }} />
      {typeof description === "string" && <span class="hint">{sanitise(description)}</span>}
    </div>
  );
}

interface FieldProps {
  readonly label: string;
  readonly property: Property;
  readonly value: unknown;
  onChange(value: unknown): void;
}

function Field({ label, property, value, onChange }: FieldProps): JSX.Element {
  const choices = choicesOf(property);
  if (property.type === "array") return <Choices {...{ label, choices, value, onChange }} />;
  if (choices.length > 0) {
    return (
      <select
        aria-label={label}
        value={String(value ?? "")}
        onChange={({ currentTarget }) => onChange(currentTarget.value)}
      >
        <option value="">choose</option>
        {choices.map(([choice, title]) => (
          <option key={choice} value={choice}>
            {title}
          </option>
        ))}
      </select>
    );
  }
  if (property.type === "boolean") {
    return <CheckBox label={label} isChecked={value === true} onChange={onChange} />;
  }
  const text = value === undefined ? "" : String(value);
  if (property.type === "number" || property.type === "integer") {
    return (
      <input
        type="number"
        step={property.type === "number" ? "any" : "1"}
        aria-label={label}
        value={text}
        onInput={({ currentTarget: { value: words } }) => onChange(words === "" ? undefined : Number(words))}
      />
    );
  }
  const placeholder = placeholders[String(property.format)] ?? "";
  return <TextField {...{ label, placeholder, onChange }} value={text} />;
}

const placeholders: Readonly<Record<string, string>> = {
  ...{ email: "name@example.com", uri: "https://example.com", date: "2026-01-31", "date-time": "2026-01-31T12:00:00Z" },
};

/** Several of a list. */
function Choices({ label, choices, value, onChange }: Omit<FieldProps, "property"> & ChoiceProps): JSX.Element {
  const marked: readonly unknown[] = Array.isArray(value) ? value : [];
  return (
    <fieldset class="choices" aria-label={label}>
      {choices.map(([choice, title]) => (
        <span key={choice}>
          <CheckBox
            label={title}
            isChecked={marked.includes(choice)}
            onChange={(isOn) => onChange(isOn ? [...marked, choice] : marked.filter((one) => one !== choice))}
          />{" "}
          {title}
        </span>
      ))}
    </fieldset>
  );
}

interface ChoiceProps {
  readonly choices: readonly Choice[];
}

type Choice = readonly [value: string, title: string];

/** The values of `enum`, or of `const` in `oneOf` and `anyOf`, of the field or of its items. */
function choicesOf(property: Property): readonly Choice[] {
  const source = isObject(property.items) ? property.items : property;
  if (Array.isArray(source.enum)) {
    const names: readonly unknown[] = Array.isArray(source.enumNames) ? source.enumNames : [];
    return source.enum.map((one: unknown, index): Choice => [String(one), sanitise(String(names[index] ?? one))]);
  }
  const titled: readonly unknown[] = [source.oneOf, source.anyOf].find(Array.isArray) ?? [];
  return titled.flatMap((one): Choice[] =>
    isObject(one) && typeof one.const === "string" ? [[one.const, sanitise(String(one.title ?? one.const))]] : [],
  );
}

interface CheckBoxProps {
  readonly label: string;
  readonly isChecked: boolean;
  onChange(isChecked: boolean): void;
}

function CheckBox({ label, isChecked, onChange }: CheckBoxProps): JSX.Element {
  return (
    <input
      type="checkbox"
      aria-label={label}
      checked={isChecked}
      onChange={({ currentTarget }) => onChange(currentTarget.checked)}
    />
  );
}

interface TextFieldProps {
  readonly label: string;
  readonly value: string;
  readonly placeholder?: string;
  onChange(value: string): void;
  onEnter?(): void;
}

export function TextField({ label, value, placeholder = label, onChange, onEnter }: TextFieldProps): JSX.Element {
  return (
    <input
      type="text"
      aria-label={label}
      placeholder={placeholder}
      value={value}
      onInput={({ currentTarget }) => onChange(currentTarget.value)}
      onKeyDown={(event) => {
        if (event.key === "Enter" && value !== "") onEnter?.();
      }}
    />
  );
}
