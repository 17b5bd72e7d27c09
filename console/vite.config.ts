import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

/** Where `npm run dev` finds a server. */
const server = process.env.DRUMTOWER_URL ?? 'http://127.0.0.1:7070';

export default defineConfig({
  plugins: [react()],
  build: {
    target: 'es2022',
    // Beside cargo's own output; `scripts/embed.mjs` takes it from there.
    outDir: '../target/console',
    emptyOutDir: true,
    // The policy of the page allows no data: address, and every file is compressed ahead.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  server: { proxy: { '/api': server } },
  // Only a hang reaches the limit, on whatever machine.
  test: { include: ['src/**/*.test.ts'], testTimeout: 60_000 },
} as Parameters<typeof defineConfig>[0]);
