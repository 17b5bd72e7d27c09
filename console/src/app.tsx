// Who is there, and which page is shown.
import { QueryClient, QueryClientProvider, useQuery, useQueryClient } from '@tanstack/react-query';
import { Component, Suspense, lazy, useEffect, useState, type ReactNode } from 'react';
import { Route, Switch, useLocation } from 'wouter';
import { Refusal, call, sessionEnded } from './api/call';
import { LiveProvider } from './api/live';
import { SessionContext, beSignedIn } from './api/session';
import { WordsProvider, useT } from './i18n';
import { Shell } from './layout';
import { NamespaceProvider } from './namespace';
import { JobsPage } from './pages/jobs';
import { OverviewPage } from './pages/overview';
import { RunsPage } from './pages/runs';
import { SignIn } from './pages/sign_in';
import { Button, Empty, Fault, Loading } from './ui/parts';
import { ToastProvider } from './ui/toast';

const EditPage = lazy(() => import('./pages/edit'));
const JobPage = lazy(() => import('./pages/job'));
const RunPage = lazy(() => import('./pages/run'));
const WorkersPage = lazy(() => import('./pages/workers'));
const WorkerPage = lazy(() => import('./pages/worker'));
const QueuesPage = lazy(() => import('./pages/queues'));
const LettersPage = lazy(() => import('./pages/letters'));
const BackfillsPage = lazy(() => import('./pages/backfills'));
const BackfillPage = lazy(() => import('./pages/backfill'));
const NewBackfillPage = lazy(() => import('./pages/backfill_new'));
const ClusterPage = lazy(() => import('./pages/cluster'));
const CalendarsPage = lazy(() => import('./pages/calendars'));
const LocksPage = lazy(() => import('./pages/locks'));
const TokensPage = lazy(() => import('./pages/tokens'));
const NotificationsPage = lazy(() => import('./pages/notifications'));
const AuditPage = lazy(() => import('./pages/audit'));

const client = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      refetchOnWindowFocus: true,
      // What was refused is refused again; a server that is away comes back.
      retry: (failures, error) => error instanceof Refusal && (error.status === 0 || error.status >= 502) && failures < 2,
      networkMode: 'always',
    },
    mutations: { networkMode: 'always' },
  },
});

export function App() {
  return (
    <QueryClientProvider client={client}>
      <WordsProvider>
        <Door />
      </WordsProvider>
    </QueryClientProvider>
  );
}

function Door() {
  const queries = useQueryClient();
  const [here] = useLocation();
  const [ended, setEnded] = useState(false);
  const session = useQuery({ queryKey: ['session'], queryFn: () => call('showSession', {}), staleTime: Infinity, retry: false });
  useEffect(() => {
    const end = () => {
      setEnded((was) => was || queries.getQueryData(['session']) !== undefined);
      queries.setQueryData(['session'], null);
    };
    sessionEnded.addEventListener('ended', end);
    return () => sessionEnded.removeEventListener('ended', end);
  }, [queries]);
  if (session.isPending) return null;
  if (session.error instanceof Refusal && session.error.status !== 401 && !session.data) {
    return (
      <div className="centre">
        <Fault error={session.error} retry={() => void session.refetch()} />
      </div>
    );
  }
  if (!session.data) {
    return (
      <SignIn
        expired={ended}
        onDone={(signedIn) => {
          setEnded(false);
          beSignedIn(queries, signedIn);
        }}
      />
    );
  }
  return (
    <SessionContext.Provider value={session.data}>
      <NamespaceProvider>
        <ToastProvider>
          <LiveProvider>
            <Shell>
              <Catch at={here}>
                <Suspense fallback={<Loading />}>
                  <Pages />
                </Suspense>
              </Catch>
            </Shell>
          </LiveProvider>
        </ToastProvider>
      </NamespaceProvider>
    </SessionContext.Provider>
  );
}

function Pages() {
  const t = useT();
  return (
    <Switch>
      <Route path="/" component={OverviewPage} />
      <Route path="/jobs" component={JobsPage} />
      <Route path="/jobs/new">
        <EditPage />
      </Route>
      <Route path="/jobs/:namespace/:name/:tab?">{(at) => <JobPage key={`${at.namespace}/${at.name}`} namespace={at.namespace} name={at.name} tab={at.tab ?? 'overview'} />}</Route>
      <Route path="/runs" component={RunsPage} />
      <Route path="/runs/:id">{(at) => <RunPage key={at.id} id={at.id} />}</Route>
      <Route path="/workers" component={WorkersPage} />
      <Route path="/workers/:name">{(at) => <WorkerPage key={at.name} name={at.name} />}</Route>
      <Route path="/queues" component={QueuesPage} />
      <Route path="/letters" component={LettersPage} />
      <Route path="/backfills" component={BackfillsPage} />
      <Route path="/backfills/new" component={NewBackfillPage} />
      <Route path="/backfills/:id">{(at) => <BackfillPage key={at.id} id={at.id} />}</Route>
      <Route path="/cluster" component={ClusterPage} />
      <Route path="/calendars" component={CalendarsPage} />
      <Route path="/locks" component={LocksPage} />
      <Route path="/tokens" component={TokensPage} />
      <Route path="/notifications" component={NotificationsPage} />
      <Route path="/audit" component={AuditPage} />
      <Route>
        <Empty title={t.fault.notFound}>
          <p>{t.fault.notFoundText}</p>
        </Empty>
      </Route>
    </Switch>
  );
}

/** A page that breaks leaves the rest of the console as it is, and other pages can be gone to. */
class Catch extends Component<{ at: string; children: ReactNode }, { error: Error | null }> {
  override state: { error: Error | null } = { error: null };

  static getDerivedStateFromError(error: Error) {
    return { error };
  }

  override componentDidUpdate(before: { at: string }) {
    if (this.state.error && before.at !== this.props.at) this.setState({ error: null });
  }

  override render() {
    return this.state.error ? <Broken error={this.state.error} /> : this.props.children;
  }
}

function Broken({ error }: { error: Error }) {
  const t = useT();
  return (
    <Empty title={t.fault.broken}>
      <p>{t.fault.brokenText}</p>
      <pre>{error.message}</pre>
      <Button onClick={() => location.reload()}>{t.fault.reload}</Button>
    </Empty>
  );
}
