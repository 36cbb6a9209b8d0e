/** Controls with their labels: none of them can be had without a name. */

import { type ComponentProps, type ReactNode, useId } from "react";

interface FieldProperties {
  readonly label: string;
  readonly hint?: ReactNode;
  readonly fault?: string | null;
}

interface ShellProperties extends FieldProperties {
  readonly children: (ids: {
    id: string;
    "aria-describedby"?: string;
    "aria-invalid"?: true;
  }) => ReactNode;
}

function Field({ label, hint, fault, children }: ShellProperties) {
  const id = useId();
  const help = fault ?? hint;
  const described = help === undefined || help === null ? {} : { "aria-describedby": `${id}-help` };
  const invalid = fault ? { "aria-invalid": true as const } : {};
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {children({ id, ...described, ...invalid })}
      {help !== undefined && help !== null && (
        <span id={`${id}-help`} className={fault ? "hint fault" : "hint"}>
          {help}
        </span>
      )}
    </div>
  );
}

type Value = { readonly value: string; readonly onValue: (value: string) => void };
type Own = keyof FieldProperties | keyof Value | "onChange" | "id" | "className";

type TextFieldProperties = FieldProperties &
  Value &
  Omit<ComponentProps<"input">, Own> & { readonly suggestions?: readonly string[] };

export function TextField(properties: TextFieldProperties) {
  const { label, hint, fault, value, onValue, suggestions = [], ...rest } = properties;
  const list = useId();
  return (
    <Field label={label} hint={hint} {...(fault === undefined ? {} : { fault })}>
      {(ids) => (
        <>
          <input
            {...ids}
            {...rest}
            {...(suggestions.length === 0 ? {} : { list })}
            className={rest.type === "password" ? "input input-secret" : "input"}
            value={value}
            onChange={(event) => onValue(event.target.value)}
          />
          {suggestions.length > 0 && (
            <datalist id={list}>
              {suggestions.map((suggestion) => (
                <option key={suggestion} value={suggestion} />
              ))}
            </datalist>
          )}
        </>
      )}
    </Field>
  );
}

type TextAreaProperties = FieldProperties & Value & Omit<ComponentProps<"textarea">, Own>;

export function TextArea({ label, hint, fault, value, onValue, ...rest }: TextAreaProperties) {
  return (
    <Field label={label} hint={hint} {...(fault === undefined ? {} : { fault })}>
      {(ids) => (
        <textarea
          {...ids}
          {...rest}
          className="input"
          value={value}
          onChange={(event) => onValue(event.target.value)}
        />
      )}
    </Field>
  );
}

export interface Option<T extends string> {
  readonly value: T;
  readonly title: string;
}

interface SelectFieldProperties<T extends string> extends FieldProperties {
  readonly value: T;
  readonly options: ReadonlyArray<Option<T>>;
  readonly onValue: (value: T) => void;
  readonly disabled?: boolean;
}

export function SelectField<T extends string>(properties: SelectFieldProperties<T>) {
  const { label, hint, value, options, onValue, disabled = false } = properties;
  return (
    <Field label={label} hint={hint}>
      {(ids) => (
        <select
          {...ids}
          className="input"
          value={value}
          disabled={disabled}
          onChange={(event) => {
            const chosen = options.find((option) => option.value === event.target.value);
            if (chosen !== undefined) onValue(chosen.value);
          }}
        >
          {options.map((option) => (
            <option key={option.value} value={option.value}>
              {option.title}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

interface CheckFieldProperties {
  readonly label: ReactNode;
  readonly isChecked: boolean;
  readonly onValue: (isChecked: boolean) => void;
  readonly hint?: string;
  readonly disabled?: boolean;
}

export function CheckField(properties: CheckFieldProperties) {
  const { label, isChecked, onValue, hint, disabled = false } = properties;
  const id = useId();
  const box = (
    <label className="check">
      <input
        type="checkbox"
        checked={isChecked}
        disabled={disabled}
        {...(hint === undefined ? {} : { "aria-describedby": id })}
        onChange={(event) => onValue(event.target.checked)}
      />
      <span>{label}</span>
    </label>
  );
  if (hint === undefined) return box;
  return (
    <div className="field">
      {box}
      <span id={id} className="hint">
        {hint}
      </span>
    </div>
  );
}

interface ChoicesProperties<T extends string> {
  readonly label: string;
  readonly isLabelSeen?: boolean;
  /** Null while nothing is chosen. */
  readonly value: T | null;
  readonly options: ReadonlyArray<Option<T>>;
  readonly onValue: (value: T) => void;
}

/** A few choices that are all in sight. */
export function Choices<T extends string>({
  label,
  isLabelSeen = false,
  value,
  options,
  onValue,
}: ChoicesProperties<T>) {
  const name = useId();
  return (
    <fieldset className="field">
      <legend className={isLabelSeen ? "" : "unseen"}>{label}</legend>
      <div className="choices">
        {options.map((option) => (
          <label key={option.value}>
            <input
              type="radio"
              name={name}
              checked={option.value === value}
              onChange={() => onValue(option.value)}
            />
            <span>{option.title}</span>
          </label>
        ))}
      </div>
    </fieldset>
  );
}
