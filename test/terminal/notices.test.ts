import { describe, expect, it, vi } from "vitest";
import { Notices } from "../../src/terminal/notices.ts";
import { SessionView } from "../../src/view/session-view.ts";
import { eventMaker } from "./fake-session.ts";

function stage(environment: Readonly<Record<string, string>>) {
  const make = eventMaker();
  const fold = new SessionView();
  const written: string[] = [];
  const notices = new Notices({ write: (bytes) => written.push(bytes), environment });
  const turn = (): void => {
    fold.apply(make("user.message", { content: "go", messageId: "m" }));
    notices.update(fold.view, []);
    fold.apply(make("session.idle", {}, { ephemeral: true }));
    notices.update(fold.view, []);
  };
  return { written, turn, notices, fold, make };
}

describe("a notice", () => {
  it("a notice is a bell where the terminal has no notifications, and only without focus", () => {
    const { written, turn, notices, fold } = stage({ TERM: "xterm-256color" });
    turn();
    expect(written).toEqual([]);
    notices.focus(false, fold.view, () => undefined);
    turn();
    expect(written).toEqual(["\u0007"]);
    notices.focus(true, fold.view, () => undefined);
    turn();
    expect(written).toHaveLength(1);
  });

  it("a notice is OSC 9 where the terminal shows it, wrapped for tmux", () => {
    const plain = stage({ TERM_PROGRAM: "WezTerm" });
    plain.notices.focus(false, plain.fold.view, () => undefined);
    plain.turn();
    expect(plain.written).toEqual(["\u001b]9;troupe: the main agent has finished\u0007"]);
    const tmux = stage({ TERM_PROGRAM: "ghostty", TMUX: "/tmp/x" });
    tmux.notices.focus(false, tmux.fold.view, () => undefined);
    tmux.turn();
    expect(tmux.written).toEqual([
      "\u001bPtmux;\u001b\u001b]9;troupe: the main agent has finished\u0007\u001b\\\u0007",
    ]);
  });

  it("a notice after a minute of absence says what happened", () => {
    const { turn, notices, fold } = stage({});
    const lines: string[] = [];
    const clock = vi.spyOn(Date, "now").mockReturnValue(Date.UTC(2026, 0, 1, 12, 0));
    fold.apply(eventMaker()("user.message", { content: "go", messageId: "m" }));
    notices.focus(false, fold.view, () => undefined);
    turn();
    clock.mockReturnValue(Date.UTC(2026, 0, 1, 12, 2));
    notices.focus(true, fold.view, (said) => lines.push(...said));
    clock.mockRestore();
    expect(lines).toEqual([expect.stringMatching(/^since \d\d:00: the main agent has finished$/)]);
  });
});
