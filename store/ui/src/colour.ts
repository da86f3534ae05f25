// Colours of frames: by package, so that one look tells whose code it is; of a comparison red what
// grew and green what shrank, or orange and blue for those who cannot tell red from green.
import { type Frame, hash } from './graph';
import type { State } from './state';

// "net/http.(*conn).serve" is of net/http, "std::vector<int>::push_back" of std; else the binary's.
export function packageOf(frame: Frame): string {
  const go = /^([\w.\-/]*\/)?[\w\-]+(?=\.)/.exec(frame.name);
  if (go && !frame.name.includes('::')) return go[0];
  const scope = /^<?([A-Za-z_]\w*)::/.exec(frame.name);
  return scope ? scope[1]! : frame.module;
}

export function colourOf(frame: Frame, palette: State['palette']): string {
  const value = hash(packageOf(frame));
  return palette === 'colour-blind'
    ? `hsl(${210 + (value % 60)}, 45%, ${62 + ((value >>> 8) % 5) * 6}%)`
    : `hsl(${(value % 260) + 10}, 62%, ${66 + ((value >>> 8) % 4) * 4}%)`;
}

// `delta` in percentage points; the colour is full at 20.
export function diffColourOf(delta: number, palette: State['palette']): string {
  const strength = Math.min(1, Math.abs(delta) / 20);
  if (Math.abs(delta) < 0.005) return 'hsl(0, 0%, 84%)';
  const hue = palette === 'colour-blind' ? (delta > 0 ? 30 : 215) : delta > 0 ? 4 : 130;
  return `hsl(${hue}, ${50 + 30 * strength}%, ${86 - 30 * strength}%)`;
}
