// Puts the build where the server embeds it from, each file beside its compressed forms, and says what a first load costs.
// The server serves one directory: names are flat.
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const BUDGET = 300_000;
const dist = '../target/console';
const embedded = 'embedded';

mkdirSync(embedded, { recursive: true });
for (const name of readdirSync(embedded)) {
  if (name !== '.gitignore') rmSync(join(embedded, name));
}

const files = [
  ...readdirSync(join(dist, 'assets')).map((name) => [name, join(dist, 'assets', name)]),
  ['index.html', join(dist, 'index.html')],
];
const sizes = new Map();
for (const [name, path] of files) {
  const whole = readFileSync(path);
  const brotli = brotliCompressSync(whole, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } });
  const gzip = gzipSync(whole, { level: 9 });
  writeFileSync(join(embedded, name), whole);
  if (brotli.length < whole.length) {
    writeFileSync(join(embedded, `${name}.br`), brotli);
    writeFileSync(join(embedded, `${name}.gz`), gzip);
  }
  sizes.set(name, Math.min(brotli.length, whole.length));
}

// Whose work is in it: every package that is not for building alone.
const lock = JSON.parse(readFileSync('package-lock.json', 'utf8'));
const packages = Object.entries(lock.packages).filter(([path, entry]) => path !== '' && !entry.dev && !entry.optional);
const licences = packages.map(([path, entry]) => {
  const file = readdirSync(path).find((name) => /^licen[cs]e/i.test(name));
  const text = file ? readFileSync(join(path, file), 'utf8').trim() : '';
  return `${path.split('node_modules/').pop()} ${entry.version}: ${entry.license}\n\n${text}\n`;
});
writeFileSync(join(embedded, 'licences.txt'), `The web console contains:\n\n${licences.join('\n----\n\n')}`);

// What the page names itself is loaded at once; the rest when it is needed.
const page = readFileSync(join(dist, 'index.html'), 'utf8');
const first = [...sizes].filter(([name]) => name === 'index.html' || page.includes(name));
const sum = (all) => all.reduce((total, [, bytes]) => total + bytes, 0);
const kB = (bytes) => `${(bytes / 1000).toFixed(1)} kB`;
console.log(`first load ${kB(sum(first))} compressed, everything ${kB(sum([...sizes]))}, ${sizes.size} files`);
if (sum(first) > BUDGET) {
  console.error(`the first load is over its budget of ${kB(BUDGET)}: load something later`);
  process.exit(1);
}
statSync(join(embedded, 'index.html'));
