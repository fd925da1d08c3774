/** The slider over all events of a session, with play at 1 to 1,000 times the speed. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { clock, count } from "../format.ts";
import type { PageSession } from "../session-model.ts";

const SPEEDS = [1, 10, 100, 1_000] as const;
/** Pauses longer than this are skipped: nothing happens in them. */
const MAX_PAUSE_MS = 5_000;

export interface ReplayProps {
  readonly model: PageSession;
  /** More events may follow. */
  readonly isOpen: boolean;
  /** Undefined in a file that was exported. */
  readonly onFork: ((eventId: string) => void) | undefined;
}

export function ReplayBar({ model, isOpen, onFork }: ReplayProps): JSX.Element {
  const [speed, setSpeed] = useState<number>(10);
  const [isPlaying, setPlaying] = useState(false);
  model.subscribe();
  const position = model.position.value;
  const { length } = model;
  const shown = position ?? length;

  usePlaying(model, isPlaying ? speed : undefined, () => setPlaying(false));

  const toggle = (): void => {
    if (!isPlaying && position === undefined) model.seek(0);
    setPlaying(!isPlaying);
  };
  const last = model.events[shown - 1];
  return (
    <fieldset class="replay" aria-label="Replay">
      <button type="button" data-replay="play" onClick={toggle}>
        {isPlaying ? "Pause" : "Play"}
      </button>
      <SpeedChoice speed={speed} onChange={setSpeed} />
      <input
        type="range"
        aria-label="Event"
        min={0}
        max={length}
        value={shown}
        onInput={({ currentTarget }) => {
          setPlaying(false);
          model.seek(Number(currentTarget.value));
        }}
      />
      <span class="where">
        {count(shown)} / {count(length)}
        {model.time !== undefined && <span class="hint"> {clock(model.time)}</span>}
      </span>
      {position === undefined ? (
        <span class="state state-idle">{isOpen ? "live" : "end"}</span>
      ) : (
        <>
          <button type="button" onClick={() => model.seek(undefined)}>
            {isOpen ? "Live" : "End"}
          </button>
          {onFork && last && (
            <button type="button" data-replay="fork" onClick={() => onFork(last.id)}>
              Fork here
            </button>
          )}
        </>
      )}
    </fieldset>
  );
}

/** Moves the position with the time between the events. An undefined speed is a pause. */
function usePlaying(model: PageSession, speed: number | undefined, onEnd: () => void): void {
  useEffect(() => {
    if (speed === undefined) return undefined;
    let frame = 0;
    let last = performance.now();
    let credit = 0;
    const step = (): void => {
      const time = performance.now();
      credit += (time - last) * speed;
      last = time;
      let next = model.position.value ?? model.length;
      while (next < model.length) {
        const pause = Math.min(pauseBefore(model, next), MAX_PAUSE_MS);
        if (pause > credit) break;
        credit -= pause;
        next++;
      }
      model.seek(next);
      if (next >= model.length) onEnd();
      else frame = requestAnimationFrame(step);
    };
    frame = requestAnimationFrame(step);
    return () => cancelAnimationFrame(frame);
  }, [speed, model]);
}

function SpeedChoice({ speed, onChange }: { readonly speed: number; onChange(speed: number): void }): JSX.Element {
  return (
    <select
      aria-label="Speed"
      value={String(speed)}
      onChange={({ currentTarget }) => onChange(Number(currentTarget.value))}
    >
      {SPEEDS.map((one) => (
        <option key={one} value={String(one)}>
          {one}×
        </option>
      ))}
    </select>
  );
}

function pauseBefore(model: PageSession, position: number): number {
  const before = model.events[position - 1];
  const next = model.events[position];
  return before && next ? Math.max(0, Date.parse(next.timestamp) - Date.parse(before.timestamp)) : 0;
}
