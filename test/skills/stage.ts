import { type SkillSearchPaths, skillLocations } from "../../src/context/skills/locations.ts";
import type { CheckPinned } from "../../src/context/skills/skill.ts";
import { type Discovery, discoverSkills } from "../../src/context/skills/skills.ts";
import type { FileTree, TempFolder } from "../../src/testing/temp-folder.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";

/** A repository `work`, a home `home`, and the state root `home/.troupe`. */
export interface SkillStage extends AsyncDisposable {
  readonly folder: TempFolder;
  at(path: string): string;
  find(more?: Partial<SkillSearchPaths> & { disabled?: readonly string[]; check?: CheckPinned }): Promise<Discovery>;
}

export async function skillStage(tree: FileTree = {}): Promise<SkillStage> {
  const folder = await tempFolder({ "work/.git/HEAD": "ref: refs/heads/main\n", "home/.keep": "", ...tree });
  return {
    folder,
    at: folder.at,
    find({ disabled, check, ...places } = {}) {
      const locations = skillLocations({
        cwd: folder.at("work"),
        gitRoot: folder.at("work"),
        stateRoot: folder.at("home/.troupe"),
        home: folder.at("home"),
        ...places,
      });
      return discoverSkills({ locations, ...(disabled && { disabled }), ...(check && { check }) });
    },
    [Symbol.asyncDispose]: () => folder.remove(),
  };
}

/** A plain SKILL.md. */
export function skill(name: string, description = `What ${name} does`, more = ""): string {
  return `---\nname: ${name}\ndescription: ${description}\n${more}---\n\n# ${name}\n\nDo it.\n`;
}
