/** Walks a parsed command and collects what it would run, write and reach. */
import type { AndOr, Assignment, Command, Pipeline, Redirection, Statement, SyntaxNode, Word } from "unbash";
import { baseName, caseFold } from "../case-fold.ts";
import type { ShellCommand, ShellParser, ShellRedirection } from "./analyse.ts";
import { either, enteredBy, type Folders, START } from "./folders.ts";
import { pathIn, urlsIn } from "./mentions.ts";
import { identifierOf, programUse } from "./programs.ts";
import { onlySeparators, type SourceSpan } from "./separators.ts";
import { type ShellWord, shellWord } from "./words.ts";
import { type Unwrapped, unwrap } from "./wrappers.ts";

export interface CommandFacts {
  readonly commands: ShellCommand[];
  readonly paths: Set<string>;
  readonly urls: Set<string>;
  readonly redirections: ShellRedirection[];
  readonly directories: string[];
  readonly opaque: Set<string>;
  readonly dangerousVariables: Set<string>;
  readonly strays: Set<string>;
  hidden: boolean;
}

export class LimitExceeded extends Error {
  override readonly name = "LimitExceeded";
}

const MAX_COMMANDS = 20_000;
const MAX_MILLISECONDS = 1500;
const MAX_DEPTH = 8;
const NODES_BETWEEN_LOOKS = 512;

/** Builtins that change the meaning of later words, or run text that does not look like a command. */
const SHELL_CHANGING = new Set(
  (
    "exec eval . source trap alias unalias set shopt enable hash declare typeset local export readonly unset let read " +
    "mapfile readarray complete compgen compopt bind fc history builtin getopts ulimit umask wait"
  ).split(" "),
);
/** With some options these take the name of a variable, and a subscript in it is evaluated as arithmetic. */
const EVALUATING = new Set(["test", "[", "printf"]);
const RESERVED = new Set(
  "if then elif else fi for while until do done case esac in select function time coproc { } ! [[ ]]".split(" "),
);
const DANGEROUS_VARIABLE =
  /^(?:LD_|DYLD_|GIT_|BASH_FUNC_|npm_config_)|^(?:PATH|BASH_ENV|ENV|PAGER|MANPAGER|LESS|LESSOPEN|LESSCLOSE|EDITOR|VISUAL|IFS|PS4|PROMPT_COMMAND|SHELLOPTS|BASHOPTS|SHELL|BROWSER|SSH_ASKPASS|NODE_OPTIONS|NODE_PATH|PYTHONPATH|PYTHONSTARTUP|PYTHONHOME|PERL5LIB|PERL5OPT|PERL5DB|RUBYOPT|RUBYLIB|JAVA_TOOL_OPTIONS|TAR_OPTIONS|GREP_OPTIONS|CDPATH|HOME)$/;

export function collect(parser: ShellParser, text: string, now: () => number): CommandFacts {
  const walk = new Walk(parser, now);
  walk.script(text, [], 0);
  walk.finish();
  return walk.found;
}

interface CommandOrigin {
  readonly via: readonly string[];
  readonly depth: number;
}

/** The state of one analysis. */
class Walk {
  readonly found: CommandFacts = {
    commands: [],
    paths: new Set(),
    urls: new Set(),
    redirections: [],
    directories: [],
    opaque: new Set(),
    dangerousVariables: new Set(),
    strays: new Set(),
    hidden: false,
  };
  readonly #parser: ShellParser;
  readonly #now: () => number;
  readonly #deadline: number;
  /** Names of files that are run, and of files that are written. A file that is both hides what runs. */
  readonly #ran = new Set<string>();
  readonly #written = new Set<string>();
  /** Positions of words and redirections in the source being walked. */
  #spans: SourceSpan[] = [];
  /** The folders in which the next command may run. */
  #here: Folders = START;
  /** The folders after the last command, by its outcome. */
  #after: { readonly ok: Folders; readonly failed: Folders } = { ok: START, failed: START };
  #nodes = 0;

  constructor(parser: ShellParser, now: () => number) {
    this.#parser = parser;
    this.#now = now;
    this.#deadline = now() + MAX_MILLISECONDS;
  }

  /** Analyses source that bash would run, at any depth. */
  script(text: string, via: readonly string[], depth: number): void {
    if (depth > MAX_DEPTH) throw new LimitExceeded(`commands are nested more than ${MAX_DEPTH} deep`);
    if (depth > 0 && text.includes("\\")) this.found.opaque.add("it holds a backslash");
    const outer = this.#spans;
    this.#spans = [];
    this.#visit(this.#parser.parse(text), { via, depth });
    if (this.found.opaque.size === 0 && !onlySeparators(text, this.#spans)) {
      this.found.opaque.add("it is not complete shell syntax");
    }
    this.#spans = outer;
  }

  finish(): void {
    for (const name of this.#ran) if (this.#written.has(name)) this.#unclear("it runs a file that it writes");
  }

  #visit(node: SyntaxNode, nesting: CommandOrigin): void {
    this.#look();
    switch (node.type) {
      case "Script":
        if ((node.errors?.length ?? 0) > 0) this.#unclear("it is not complete shell syntax");
        break;
      case "Statement":
        this.#statement(node, nesting);
        return;
      case "AndOr":
        this.#andOr(node, nesting);
        return;
      case "Pipeline":
        this.#pipeline(node, nesting);
        return;
      case "Command":
        this.#command(node, nesting);
        return;
      case "Word":
        this.#looseWord(node, nesting);
        return;
      case "Assignment":
        this.#assignment(node, nesting);
        return;
      case "Redirect":
      case "HereString":
      case "HereDoc":
        this.#redirection(node, { ...nesting, consumerKnown: false });
        return;
      default:
        this.found.opaque.add("it uses shell keywords or functions");
    }
    const before = this.#here;
    this.#children(node, nesting);
    this.#moved(node.type === "Subshell" ? before : either(before, this.#here));
  }

  /** Sets the folders of the next command, whatever the outcome of the last one. */
  #moved(here: Folders): void {
    this.#here = here;
    this.#after = { ok: here, failed: here };
  }

  #statement({ command, background }: Statement, nesting: CommandOrigin): void {
    const before = this.#here;
    this.#visit(command, nesting);
    this.#moved(background === true ? before : either(this.#after.ok, this.#after.failed));
  }

  #andOr({ commands, operators }: AndOr, nesting: CommandOrigin): void {
    let { ok, failed } = { ok: this.#here, failed: this.#here };
    for (const [index, command] of commands.entries()) {
      const operator = operators[index - 1];
      if (operator !== undefined) this.#here = operator === "&&" ? ok : failed;
      this.#visit(command, nesting);
      const after = this.#after;
      if (operator === undefined) ({ ok, failed } = after);
      else if (operator === "&&") [ok, failed] = [after.ok, either(failed, after.failed)];
      else [ok, failed] = [either(ok, after.ok), after.failed];
    }
    this.#after = { ok, failed };
  }

  #pipeline({ prefixes, commands }: Pipeline, nesting: CommandOrigin): void {
    if (prefixes.length > 0) this.found.opaque.add("it uses shell keywords");
    const before = this.#here;
    for (const command of commands) {
      // Each part of a pipeline runs in its own subshell.
      this.#here = before;
      this.#visit(command, nesting);
    }
    if (commands.length > 1) this.#moved(before);
    else if (prefixes.length > 0) this.#moved(either(this.#after.ok, this.#after.failed));
  }

  #children(node: SyntaxNode, nesting: CommandOrigin): void {
    this.#parser.forEachChild(node, (child) => this.#visit(child, nesting));
  }

  #command(node: Command, nesting: CommandOrigin): void {
    const words: ShellWord[] = [];
    this.#spans.push(...(node.name === undefined ? [] : [node.name]), ...node.args, ...node.redirects);
    const name = node.name === undefined ? undefined : this.#word(node.name, nesting);
    if (name === undefined) this.found.opaque.add("it sets variables or opens files without a command");
    else words.push(name);
    for (const argument of node.args) {
      if (argument.type === "Word") words.push(this.#word(argument, nesting));
      else {
        this.#assignment(argument, nesting);
        words.push(assignedWord(argument));
      }
    }
    for (const item of node.prefix) if (item.type === "Assignment") this.#assignment(item, nesting);
    const consumerKnown = words.length > 0 && programUse(words.map((word) => word.value)).known;
    for (const redirect of node.redirects) this.#redirection(redirect, { ...nesting, consumerKnown });
    this.#after = { ok: this.#here, failed: this.#here };
    if (words.length > 0) this.#run(words, { ...nesting, openEnded: false });
  }

  /** Records a command with these words, and everything that runs inside it. */
  #run(words: readonly ShellWord[], nesting: CommandOrigin & { openEnded: boolean }): void {
    const [program] = words;
    if (program === undefined) return;
    if (nesting.depth > MAX_DEPTH) throw new LimitExceeded(`commands are nested more than ${MAX_DEPTH} deep`);
    if (this.found.commands.length >= MAX_COMMANDS)
      throw new LimitExceeded(`it holds more than ${MAX_COMMANDS} commands`);
    this.#look();
    const { found } = this;
    const values = words.map((word) => word.value);
    const name = baseName(program.value);
    if (!program.literal) this.#unclear("the name of a program is only known when it runs");
    if (RESERVED.has(name) || name.startsWith("%")) found.opaque.add("it uses shell keywords");
    if (SHELL_CHANGING.has(name)) found.opaque.add(`it uses ${name}, which changes the shell or runs text`);
    const certain = !nesting.openEnded && words.every((word) => word.literal);
    const use = programUse(values);
    if (use.escapes && EVALUATING.has(name)) found.opaque.add(`it uses ${name} on the name of a variable`);
    const unwrapped = unwrap(words);
    found.commands.push({
      identifier: identifierOf(values),
      words: values,
      readOnly: use.readOnly && certain && (unwrapped === undefined || unwrapped.inner.length === 0),
      certain,
      escapes: use.escapes || nesting.openEnded,
      via: nesting.via,
      transparent: unwrapped?.transparent ?? false,
      ...this.#where(),
    });
    this.#mentions(words, name);
    const entered = enteredBy(name, words.slice(1), this.#here);
    if (entered) this.#after = { ok: entered, failed: this.#here };
    if (!use.known) this.#strayWords(strayArguments(words.slice(1), unwrapped));
    if (unwrapped !== undefined) this.#inside(unwrapped, name, nesting);
  }

  #inside(unwrapped: Unwrapped, name: string, nesting: CommandOrigin & { openEnded: boolean }): void {
    const openEnded = nesting.openEnded || unwrapped.openEnded;
    const empty = unwrapped.inner.length === 0 && unwrapped.scripts.length === 0;
    if (unwrapped.hidden || (empty && nesting.openEnded)) this.#unclear("what it runs is only known when it runs");
    for (const variable of unwrapped.variables) this.#variable(variable);
    const via = [...nesting.via, name];
    for (const words of unwrapped.inner) {
      if (words.some((word) => !word.plain)) this.found.opaque.add("it uses expansions or patterns");
      this.#run(words, { via, depth: nesting.depth + 1, openEnded });
    }
    for (const script of unwrapped.scripts) this.#scriptOf(name, script, { via, depth: nesting.depth + 1 });
  }

  /** A script of another shell does not change the folder of this one; `eval` and similar builtins do. */
  #scriptOf(name: string, script: string, nesting: CommandOrigin): void {
    const before = this.#here;
    const after = this.#after;
    this.script(script, nesting.via, nesting.depth);
    const stays = name !== "eval" && name !== "trap" && name !== "alias";
    if (stays) [this.#here, this.#after] = [before, after];
    else this.#moved(either(before, this.#here));
  }

  #where(): Pick<ShellCommand, "folders"> {
    return this.#here === START ? {} : { folders: this.#here };
  }

  #word(word: Word, nesting: CommandOrigin): ShellWord {
    const seen = shellWord(word);
    if (seen.plain) return seen;
    this.found.opaque.add("it uses expansions or patterns");
    if (word.parts !== undefined) this.#parts(word, nesting);
    return seen;
  }

  /** Analyses expansions inside a word: their commands run before the word is known. */
  #parts(node: SyntaxNode, nesting: CommandOrigin): void {
    this.#parser.forEachChild(node, (child) => {
      this.#look();
      if (child.type === "Transform") this.#unclear("it expands a variable as a prompt");
      if (child.type === "Script") this.#substituted(child, nesting);
      else if (child.type === "Assignment") this.#assignment(child, nesting);
      else this.#parts(child, nesting);
    });
  }

  /** A substitution runs in a subshell. */
  #substituted(script: SyntaxNode, nesting: CommandOrigin): void {
    const [here, after] = [this.#here, this.#after];
    this.#visit(script, { via: nesting.via, depth: nesting.depth });
    [this.#here, this.#after] = [here, after];
  }

  /** Handles a word that belongs to no command, such as one of a `for` list. */
  #looseWord(word: Word, nesting: CommandOrigin): void {
    this.#strayWords([this.#word(word, nesting)]);
  }

  #assignment(node: Assignment, nesting: CommandOrigin): void {
    this.found.opaque.add("it sets variables");
    this.#variable(node.name);
    this.#strayText(node.text.slice(node.text.indexOf("=") + 1));
    this.#parts(node, nesting);
    const { value } = node;
    for (const word of value.type === "Word" ? [value] : value.elements) this.#strayWords([shellWord(word)]);
  }

  #variable(name: string): void {
    if (!DANGEROUS_VARIABLE.test(name)) return;
    this.found.dangerousVariables.add(name);
    this.found.opaque.add(`it sets ${name}, which changes what other programs do`);
  }

  #redirection(node: Redirection, nesting: CommandOrigin & { consumerKnown: boolean }): void {
    if (node.descriptor?.type === "FileDescriptorVariable") this.found.opaque.add("it sets variables");
    if (node.type === "HereDoc") {
      this.found.opaque.add("it holds a here-document");
      if (!nesting.consumerKnown) this.#strayText(node.body.text);
      this.#parts(node.body, nesting);
      return;
    }
    const target = node.target === undefined ? undefined : this.#word(node.target, nesting);
    if (target === undefined) return;
    if (node.type === "HereString") {
      this.found.opaque.add("it holds a here-string");
      if (!nesting.consumerKnown) this.#strayWords([target]);
      return;
    }
    const isDescriptor = /&$/.test(node.operator) && /^(?:\d+-?|-)$/.test(target.value);
    if (isDescriptor) return;
    // A number directly before another redirection belongs to that one.
    if (/^\d+$/.test(target.value)) this.found.opaque.add("it redirects to a number");
    const write = node.operator.includes(">");
    this.found.redirections.push({ target: target.value, write, ...this.#where() });
    if (write) this.#written.add(caseFold(baseName(target.value)));
  }

  /** Records paths, addresses and folders that a command names. */
  #mentions(words: readonly ShellWord[], name: string): void {
    const [program, ...args] = words;
    const ranFile = program?.value.includes("/") ? program : SHELL_FILES.has(name) ? args.find(isOperand) : undefined;
    if (ranFile !== undefined) this.#ran.add(caseFold(baseName(ranFile.value)));
    if (name === "tee") for (const word of args) this.#written.add(caseFold(baseName(word.value)));
    if (program?.value.includes("/")) this.found.paths.add(program.value);
    for (const word of args) {
      for (const url of urlsIn(word.value, name)) this.found.urls.add(url);
      const path = pathIn(word.value);
      if (path !== undefined) this.found.paths.add(path);
    }
    if (name === "cd" || name === "pushd" || name === "popd") {
      const operand = args.find((word) => !/^-./.test(word.value))?.value;
      this.found.directories.push(operand ?? (name === "cd" ? "~" : "-"));
    }
  }

  #strayWords(words: readonly ShellWord[]): void {
    for (const word of words) this.#strayText(word.value);
  }

  #strayText(text: string): void {
    // Shell code in a position where a shell may still evaluate it.
    if (/`|\$[([]|[<>]\(/.test(text)) this.found.hidden = true;
    for (const token of text.split(/[^\p{L}\p{N}_.+-]+/u)) if (token !== "") this.found.strays.add(caseFold(token));
  }

  #unclear(reason: string): void {
    this.found.opaque.add(reason);
    this.found.hidden = true;
  }

  #look(): void {
    this.#nodes++;
    if (this.#nodes % NODES_BETWEEN_LOOKS !== 0) return;
    if (this.#now() > this.#deadline) throw new LimitExceeded(`its analysis takes longer than ${MAX_MILLISECONDS} ms`);
  }
}

const SHELL_FILES = new Set(["sh", "bash", "zsh", "dash", "ksh", "ash", ".", "source"]);

/** Returns `name=value` as an argument, as for `export` and `alias`. */
function assignedWord({ name, value, text }: Assignment): ShellWord {
  if (value.type !== "Word") return { value: text, literal: false, plain: false };
  const seen = shellWord(value);
  return { value: `${name}=${seen.value}`, literal: seen.literal, plain: false };
}

/** Returns the arguments that an unknown program could run. Unwrapped arguments are analysed as commands instead. */
function strayArguments(args: readonly ShellWord[], unwrapped: Unwrapped | undefined): readonly ShellWord[] {
  if (unwrapped === undefined || unwrapped.hidden) return args;
  const seen = new Set([...unwrapped.scripts, ...unwrapped.inner.flat().map((word) => word.value)]);
  return args.filter((word) => !seen.has(word.value));
}

function isOperand(word: ShellWord): boolean {
  return !word.value.startsWith("-");
}
