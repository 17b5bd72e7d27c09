// The console: one page, its state from the API and the stream of changes only.
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { App } from './app';
import './design/tokens.css';
import './design/base.css';
import './design/layout.css';
import './design/parts.css';
import './design/views.css';
import { beginTheme } from './theme';

beginTheme();

const ANEW_MS = 60_000;

/** Whether the page has just begun anew: what is missing then is not there the next time either. */
function isAnew(): boolean {
  const [entry] = performance.getEntriesByType('navigation') as PerformanceNavigationTiming[];
  return entry?.type === 'reload' && performance.now() < ANEW_MS;
}

// After an upgrade of the server the parts that this page would load later are gone: begin anew with the new ones.
addEventListener('vite:preloadError', (event) => {
  if (isAnew()) return;
  event.preventDefault();
  location.reload();
});

const place = document.getElementById('app');
if (place) {
  createRoot(place).render(
    <StrictMode>
      <App />
    </StrictMode>,
  );
}
