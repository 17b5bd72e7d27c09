import { defineConfig } from 'vitest/config';

export default defineConfig({ test: { include: ['e2e/screenshots.ts'], testTimeout: 3_600_000, hookTimeout: 600_000 } });
