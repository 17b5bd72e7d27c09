// The namespace that is looked at: all of them, one that was chosen, or the one that the token is bound to.
import { createContext, useContext, useState, type ReactNode } from 'react';
import { useSession } from './api/session';
import { remember, remembered } from './memory';

type Chosen = [string, (namespace: string) => void];

const NamespaceContext = createContext<Chosen>(['', () => undefined]);

export function NamespaceProvider({ children }: { children: ReactNode }) {
  const bound = useSession().namespace;
  const [chosen, choose] = useState(() => remembered('namespace') ?? '');
  const set = (namespace: string) => {
    remember('namespace', namespace);
    choose(namespace);
  };
  return <NamespaceContext.Provider value={[bound ?? chosen, set]}>{children}</NamespaceContext.Provider>;
}

/** The empty text means all of them. */
export function useNamespace(): Chosen {
  return useContext(NamespaceContext);
}
