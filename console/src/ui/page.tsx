/** The frame of a page: its heading takes the focus, so that a screen reader says where one is. */

import { type ReactNode, useEffect, useRef } from "react";

interface PageProperties {
  readonly title: string;
  readonly about?: ReactNode;
  readonly trail?: ReactNode;
  readonly actions?: ReactNode;
  readonly children: ReactNode;
}

export function Page({ title, about, trail, actions, children }: PageProperties) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    heading.current?.focus({ preventScroll: true });
    window.scrollTo(0, 0);
  }, []);
  useEffect(() => {
    document.title = `${title} · Tollhouse`;
  }, [title]);
  return (
    <>
      <div className="heading">
        <div>
          {trail !== undefined && <div className="trail">{trail}</div>}
          <h1 ref={heading} tabIndex={-1}>
            {title}
          </h1>
          {about !== undefined && <p>{about}</p>}
        </div>
        {actions !== undefined && <div className="row">{actions}</div>}
      </div>
      <div className="stack">{children}</div>
    </>
  );
}
