import { describe, expect, it } from 'vitest';
import { labelsOf, line, read, words, written } from './manifest';

const TEXT = '# nightly\nkind: Job\nname: a # its name\ntask:\n  exec:\n    argv: [ "true" ]\n';

describe('a manifest', () => {
  it('keeps its comments when the form writes into it', () => {
    const text = written(TEXT, ['retry', 'max_attempts'], 5);
    expect(text).toContain('# nightly');
    expect(text).toContain('# its name');
    expect(read(text).spec?.retry).toEqual({ max_attempts: 5 });
    expect(read(written(text, ['retry', 'max_attempts'], undefined)).spec).not.toHaveProperty('retry');
  });

  it('says where it is no YAML', () => {
    expect(read('kind: Job\nname: [a\n').fault?.line).toBeGreaterThan(1);
    expect(read('just words').fault).not.toBeNull();
    expect(written('name: [a', ['name'], 'b')).toBe('name: [a');
  });
});

describe('a command', () => {
  it('is parted as a terminal would', () => {
    expect(words(`sh -c 'echo "a b"; exit 3'`)).toEqual(['sh', '-c', 'echo "a b"; exit 3']);
    expect(words(`a\\ b "" c`)).toEqual(['a b', '', 'c']);
    for (const argv of [['echo', "it's"], ['a b', ''], ['x', '$HOME;']]) expect(words(line(argv))).toEqual(argv);
  });
});

it('labels are pairs', () => {
  expect(labelsOf('team=a, url=x=y,')).toEqual({ team: 'a', url: 'x=y' });
  expect(labelsOf(' ')).toBeUndefined();
});
