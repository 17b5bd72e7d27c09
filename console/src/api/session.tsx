// Who is signed in. Pages ask it what they may offer; the server decides all the same.
import type { QueryClient } from '@tanstack/react-query';
import { createContext, useContext } from 'react';
import type { Operation, Session } from './schema';

export const SessionContext = createContext<Session | null>(null);

export function useSession(): Session {
  const session = useContext(SessionContext);
  if (!session) throw new Error('outside of a session');
  return session;
}

/** Whether the role of whoever is signed in may do this. */
export function useMay(): (operation: Operation) => boolean {
  const { may } = useSession();
  return (operation) => may.includes(operation);
}

/** Whoever was there before left nothing to see. */
export function beSignedIn(queries: QueryClient, session: Session | null): void {
  queries.removeQueries({ predicate: (query) => query.queryKey[0] !== 'session' });
  queries.setQueryData(['session'], session);
}
