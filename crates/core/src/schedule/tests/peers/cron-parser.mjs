// Asks cron-parser, a cron library for JavaScript, for the times of the lines in croniter.tsv and writes cron-parser.tsv.
//
//     npm install cron-parser@5.10.4
//     node cron-parser.mjs
//
// The columns are those that make.py describes. Lines with `W` are left out: the library does not know it.

import { readFileSync, writeFileSync } from "node:fs";
import { CronExpressionParser } from "cron-parser";

const VERSION = "5.10.4";
const TIMES = 4;
// Every other line is enough for a second opinion, besides the few with days before the last.
const EVERY = 2;

function times(line, tz, start) {
  let found;
  try {
    found = CronExpressionParser.parse(line, { currentDate: new Date(start * 1000), tz });
  } catch {
    return "!";
  }
  const gaps = [];
  let last = start;
  for (let n = 0; n < TIMES; n += 1) {
    let at;
    try {
      at = found.next().toDate().getTime() / 1000;
    } catch {
      break;
    }
    gaps.push(at - last);
    last = at;
  }
  return gaps.join(" ") || "-";
}

const here = (name) => new URL(name, import.meta.url);
const lines = readFileSync(here("croniter.tsv"), "utf8").split("\n");
const rows = [`# cron-parser ${VERSION}, written by cron-parser.mjs`];
lines
  .filter((row) => row && !row.startsWith("#"))
  .filter((row, index) => index % (2 * EVERY) === 0 || row.includes(" L-"))
  .filter((row) => !row.split("\t")[0].includes("W"))
  .forEach((row) => {
    const [line, zone, start] = row.split("\t");
    rows.push([line, zone, start, times(line, zone, Number(start))].join("\t"));
  });
writeFileSync(here("cron-parser.tsv"), `${rows.join("\n")}\n`);
