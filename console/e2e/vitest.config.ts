import { defineConfig } from 'vitest/config';

// Real servers, real workers, a real browser. Two files at a time: each has a server of its own.
// Each step has a limit of its own (PATIENCE_MS); those of whole tests are for machines that do ten other things.
export default defineConfig({
  test: { include: ['e2e/**/*.test.ts'], testTimeout: 900_000, hookTimeout: 300_000, maxWorkers: 2, reporters: ['default'] },
});
