import { findSkill, type Skill } from "../../context/skills/skill.ts";
import { TroupeError } from "../../protocol/errors.ts";

/** The skills of one session. They can be enabled, disabled and reloaded while it is open. */
export class CurrentSkills {
  #found: readonly Skill[];
  readonly #find: () => Promise<readonly Skill[]>;
  readonly #onChange: () => void;
  /** Skills enabled or disabled by name; the others are as found. */
  readonly #switched = new Map<string, boolean>();

  constructor(found: readonly Skill[], options: { find(): Promise<readonly Skill[]>; onChange(): void }) {
    this.#found = found;
    this.#find = options.find;
    this.#onChange = options.onChange;
  }

  get all(): readonly Skill[] {
    if (this.#switched.size === 0) return this.#found;
    return this.#found.map((skill) => ({ ...skill, enabled: this.#switched.get(skill.name) ?? skill.enabled }));
  }

  /** Throws a `TroupeError` if there is no skill of this name. */
  setEnabled(name: string, enabled: boolean): void {
    const skill = findSkill(name, this.#found);
    if (!skill) throw new TroupeError("usage", `There is no skill ${name}.`);
    this.#switched.set(skill.name, enabled);
    this.#onChange();
  }

  async reload(): Promise<void> {
    this.#found = await this.#find();
    this.#onChange();
  }
}
