// Short words about what was done, or why not. They go away by themselves; refusals stay longer.
import { createContext, useCallback, useContext, useMemo, useState, type ReactNode } from 'react';
import { useT } from '../i18n';
import { faultWords } from './fault';

interface Toast {
  id: number;
  tone: 'completed' | 'failed' | 'warning';
  title: string;
  text: string;
}

interface Toasts {
  say(title: string, text?: string): void;
  complain(error: unknown): void;
}

const ToastContext = createContext<Toasts | null>(null);
let next = 1;

export function ToastProvider({ children }: { children: ReactNode }) {
  const t = useT();
  const [toasts, setToasts] = useState<Toast[]>([]);
  const add = useCallback((toast: Omit<Toast, 'id'>, ms: number) => {
    const id = next++;
    setToasts((all) => [...all.slice(-3), { ...toast, id }]);
    setTimeout(() => setToasts((all) => all.filter((one) => one.id !== id)), ms);
  }, []);
  const value = useMemo<Toasts>(
    () => ({
      say: (title, text = '') => add({ tone: 'completed', title, text }, 4000),
      complain(error) {
        add({ tone: 'failed', ...faultWords(t, error) }, 10_000);
      },
    }),
    [add, t],
  );
  return (
    <ToastContext.Provider value={value}>
      {children}
      <div className="toasts" role="status" aria-live="polite">
        {toasts.map((toast) => (
          <div key={toast.id} className="notice toast" data-tone={toast.tone}>
            <strong>{toast.title}</strong>
            {toast.text && <span>{toast.text}</span>}
          </div>
        ))}
      </div>
    </ToastContext.Provider>
  );
}

export function useToasts(): Toasts {
  const toasts = useContext(ToastContext);
  if (!toasts) throw new Error('outside of the toasts');
  return toasts;
}

/** Does something, says so, or says why not. */
export function useDo(): (what: () => Promise<unknown>, said: string) => Promise<boolean> {
  const { say, complain } = useToasts();
  return async (what, said) => {
    try {
      await what();
      say(said);
      return true;
    } catch (error) {
      complain(error);
      return false;
    }
  };
}
