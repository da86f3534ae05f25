import { useEffect, useState } from 'preact/hooks';

export interface Answer<T> {
  value?: T; // stays while a newer one is on its way
  error?: Error;
  loading: boolean;
}

// What `load` gives, anew when `key` changes; an answer that comes too late is thrown away.
export function useAnswer<T>(key: string, load: (signal: AbortSignal) => Promise<T>): Answer<T> {
  const [answer, setAnswer] = useState<Answer<T>>({ loading: true });
  useEffect(() => {
    const abort = new AbortController();
    setAnswer((old) => ({ ...old, loading: true }));
    load(abort.signal).then(
      (value) => !abort.signal.aborted && setAnswer({ value, loading: false }),
      (error: Error) => !abort.signal.aborted && setAnswer({ error, loading: false }),
    );
    return () => abort.abort();
  }, [key]);
  return answer;
}
