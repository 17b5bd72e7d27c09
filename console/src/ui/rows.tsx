// A table of any length: rows exist only while they are in sight. All are equally high, so that where one stands is a
// multiplication, however many there are. What leaves at one edge is filled anew for what comes in at the other: making
// and dropping elements is what costs when one scrolls fast.
import { useEffect, useRef, useState, type ReactNode } from 'react';

export interface Column<T> {
  key: string;
  title: ReactNode;
  width: string;
  number?: boolean;
  cell: (row: T, index: number) => ReactNode;
}

interface Props<T> {
  rows: T[];
  columns: Column<T>[];
  label: string;
  minWidth?: string;
  /** Called when the end comes into sight. */
  onEnd?: () => void;
  onTop?: (atTop: boolean) => void;
  foot?: ReactNode;
  selected?: (row: T) => boolean;
}

const ROW_PX = 42;
/** Rows beyond the edges that exist already when one scrolls. */
const BEYOND = 12;

export function Rows<T>({ rows, columns, label, minWidth, onEnd, onTop, foot, selected }: Props<T>) {
  const place = useRef<HTMLDivElement>(null);
  const [sight, setSight] = useState({ top: 0, height: 900 });
  useEffect(() => {
    const element = place.current;
    if (!element) return;
    const watch = new ResizeObserver(() => setSight((before) => ({ ...before, height: element.clientHeight })));
    watch.observe(element);
    return () => watch.disconnect();
  }, []);
  const first = Math.max(0, Math.floor(sight.top / ROW_PX) - BEYOND);
  const slots = Math.ceil(sight.height / ROW_PX) + 2 * BEYOND + 2;
  const last = Math.min(rows.length, Math.ceil((sight.top + sight.height) / ROW_PX) + BEYOND);
  useEffect(() => {
    if (onEnd && last >= rows.length - 40) onEnd();
  }, [last, rows.length, onEnd]);
  const template = { gridTemplateColumns: columns.map((column) => column.width).join(' ') };
  const vars = minWidth ? ({ '--grid-min': minWidth } as React.CSSProperties) : undefined;
  return (
    <div
      ref={place}
      className="grid"
      role="table"
      aria-label={label}
      aria-rowcount={rows.length}
      tabIndex={0}
      style={vars}
      onScroll={(event) => {
        const top = event.currentTarget.scrollTop;
        setSight((before) => ({ ...before, top }));
        onTop?.(top < ROW_PX);
      }}
    >
      <div role="rowgroup">
        <div className="grid-head" role="row" style={template}>
          {columns.map((column) => (
            <div key={column.key} role="columnheader" className={column.number ? 'number' : undefined}>
              {column.title}
            </div>
          ))}
        </div>
      </div>
      <div className="grid-body" role="rowgroup" style={{ height: rows.length * ROW_PX }}>
        {rows.slice(first, last).map((row, offset) => {
          const index = first + offset;
          return (
            <div
              key={index % slots}
              role="row"
              aria-rowindex={index + 2}
              aria-selected={selected ? selected(row) : undefined}
              className="grid-row"
              style={{ ...template, transform: `translateY(${index * ROW_PX}px)` }}
            >
              {columns.map((column) => (
                <div key={column.key} role="cell" className={column.number ? 'number' : undefined}>
                  {column.cell(row, index)}
                </div>
              ))}
            </div>
          );
        })}
      </div>
      {foot}
    </div>
  );
}
