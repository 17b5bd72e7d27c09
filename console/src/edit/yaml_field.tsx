// A field for YAML: a plain text area over a coloured copy of its text. Tab indents; Escape lets Tab move on.
import { memo, useRef } from 'react';

// A comment; a key; a text in quotes; a number or a word with a meaning.
const TOKENS = /(?<comment>(?:^|\s)#.*$)|(?<key>^\s*(?:- )*[\w.-]+(?=:(?:\s|$)))|(?<text>"(?:[^"\\]|\\.)*"|'(?:[^']|'')*')|(?<number>\b(?:true|false|null|\d+(?:\.\d+)?)\b)/g;

function coloured(line: string): React.ReactNode[] {
  const parts: React.ReactNode[] = [];
  let from = 0;
  for (const match of line.matchAll(TOKENS)) {
    parts.push(line.slice(from, match.index));
    const kind = Object.entries(match.groups ?? {}).find(([, value]) => value !== undefined)?.[0];
    parts.push(
      <span key={match.index} className={`y-${kind}`}>
        {match[0]}
      </span>,
    );
    from = match.index + match[0].length;
  }
  parts.push(line.slice(from));
  return parts;
}

const CodeLine = memo(function CodeLine({ text, wrong }: { text: string; wrong: boolean }) {
  return (
    <span className="line" data-wrong={wrong}>
      {coloured(text)}
      {'\n'}
    </span>
  );
});

export function YamlField({ label, text, onChange, wrongLine, readOnly }: { label: string; text: string; onChange: (text: string) => void; wrongLine: number | null; readOnly?: boolean }) {
  const area = useRef<HTMLTextAreaElement>(null);
  const free = useRef(false);
  const indent = (event: React.KeyboardEvent<HTMLTextAreaElement>) => {
    if (event.key === 'Escape') free.current = true;
    if (event.key !== 'Tab' || event.shiftKey || free.current || !area.current || readOnly) return;
    event.preventDefault();
    area.current.setRangeText('  ', area.current.selectionStart, area.current.selectionEnd, 'end');
    onChange(area.current.value);
  };
  return (
    <div className="yaml" data-wrong={wrongLine !== null}>
      <pre aria-hidden="true">
        {text.split('\n').map((line, index) => (
          <CodeLine key={index} text={line} wrong={wrongLine === index + 1} />
        ))}
      </pre>
      <textarea
        ref={area}
        aria-label={label}
        value={text}
        readOnly={readOnly}
        spellCheck={false}
        autoCapitalize="off"
        autoCorrect="off"
        wrap="off"
        onBlur={() => (free.current = false)}
        onKeyDown={indent}
        onChange={(event) => onChange(event.target.value)}
      />
    </div>
  );
}
