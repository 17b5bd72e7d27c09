// A link to another page of the console. Unlike the router's own it listens to nothing, so that thousands come and go
// with the rows of a table at no cost.
import type { AnchorHTMLAttributes } from 'react';
import { navigate } from 'wouter/use-browser-location';

type Props = AnchorHTMLAttributes<HTMLAnchorElement> & { href: string; [data: `data-${string}`]: string | undefined };

export function Link({ href, onClick, ...rest }: Props) {
  return (
    <a
      href={href}
      onClick={(event) => {
        onClick?.(event);
        const elsewhere = event.ctrlKey || event.metaKey || event.shiftKey || event.altKey || event.button !== 0;
        if (elsewhere || event.defaultPrevented) return;
        event.preventDefault();
        navigate(href);
      }}
      {...rest}
    />
  );
}
