/** Prints the completion script of a shell. The scripts ask `troupe __complete` for everything that can be typed, and keep its order: the newest session first. */
import { type Arguments, usage } from "../args.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { write } from "../output/output.ts";

export async function completionCommand(given: Arguments): Promise<ExitCode> {
  const [, shell, ...more] = given.words;
  const script = scripts[shell as keyof typeof scripts];
  if (shell === undefined || !Object.hasOwn(scripts, shell) || more.length > 0)
    throw usage(`troupe completion needs a shell: ${Object.keys(scripts).join(", ")}.`);
  await write(script);
  return exitCodes.done;
}

/** Readline splits words at = and :, which occur in our values: they are joined again. Works with bash 3.2. */
const bash = String.raw`# Completion of troupe for bash. Load it with: source <(troupe completion bash)
_troupe() {
  local i word line value current prefix join=0
  local -a typed
  for ((i = 1; i <= COMP_CWORD; i++)); do
    word=${"$"}{COMP_WORDS[i]}
    if ((i > 1)) && { ((join)) || [[ $word == [=:]* ]]; }; then
      typed[${"$"}{#typed[@]}-1]+=$word
    else
      typed+=("$word")
    fi
    join=0
    [[ $word == *[=:] ]] && join=1
  done
  current=${"$"}{typed[${"$"}{#typed[@]}-1]}
  prefix=${"$"}{current%"${"$"}{current##*[=:]}"}
  COMPREPLY=()
  compopt -o nosort 2> /dev/null
  while IFS= read -r line; do
    value=${"$"}{line%%$'\t'*}
    case $line in
      :file | :folder)
        compopt -o filenames 2> /dev/null
        local kind=-f
        [[ $line == :folder ]] && kind=-d
        while IFS= read -r value; do COMPREPLY+=("$value"); done < <(compgen "$kind" -- "${"$"}{current#"$prefix"}")
        ;;
      *) COMPREPLY+=("${"$"}{value#"$prefix"}") ;;
    esac
  done < <("$1" __complete -- "${"$"}{typed[@]}" 2> /dev/null)
}
complete -F _troupe troupe
`;

const zsh = String.raw`#compdef troupe
# Completion of troupe for zsh. Load it with: source <(troupe completion zsh)
_troupe() {
  local line kind
  local -a values
  for line in "${"$"}{(@f)$(troupe __complete -- "${"$"}{(@Q)words[2,CURRENT]}" 2> /dev/null)}"; do
    case $line in
      '') ;;
      :file) kind=file ;;
      :folder) kind=folder ;;
      *) values+=("${"$"}{${"$"}{line%%$'\t'*}//:/\\:}:${"$"}{line#*$'\t'}") ;;
    esac
  done
  (( ${"$"}{#values} )) && _describe -V troupe values
  [[ $kind == file ]] && _files
  [[ $kind == folder ]] && _files -/
  return 0
}
if [[ $funcstack[1] == _troupe ]]; then _troupe; else compdef _troupe troupe; fi
`;

const fish = `# Completion of troupe for fish. Load it with: troupe completion fish | source
function __troupe_complete
  set -l words (commandline -opc)
  set -e words[1]
  set -l current (commandline -ct)
  for line in (troupe __complete -- $words "$current" 2> /dev/null)
    switch $line
      case ':file'
        __fish_complete_path "$current"
      case ':folder'
        __fish_complete_directories "$current"
      case '*'
        echo $line
    end
  end
end
complete -c troupe -k -f -a '(__troupe_complete)'
`;

const scripts = { bash, zsh, fish };
