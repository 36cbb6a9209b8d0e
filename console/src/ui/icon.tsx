/** One line drawing for each page of the menu. Titles say the same, so that they are decoration. */

import type { ReactNode } from "react";
import type { Section } from "../base/places";

const DRAWINGS: Readonly<Record<Section, ReactNode>> = {
  overview: (
    <>
      <rect x="3" y="3" width="6" height="8" rx="1" />
      <rect x="11" y="3" width="6" height="5" rx="1" />
      <rect x="3" y="13" width="6" height="4" rx="1" />
      <rect x="11" y="10" width="6" height="7" rx="1" />
    </>
  ),
  costs: <path d="M3 17h14M5 14v-3M10 14V4M15 14V8" />,
  credit: (
    <>
      <rect x="2.5" y="5" width="15" height="11" rx="1.5" />
      <path d="M2.5 9h15M5.5 13h3" />
    </>
  ),
  requests: <path d="M3 7h13M13 4l3 3-3 3M17 13H4M7 10l-3 3 3 3" />,
  policies: (
    <>
      <path d="M10 2.5l6.5 2.5v4.5c0 4-2.7 6.8-6.5 8-3.8-1.2-6.5-4-6.5-8V5z" />
      <path d="M7 10l2.2 2.2L13.2 8" />
    </>
  ),
  projects: (
    <path d="M2.5 6V5a1 1 0 0 1 1-1H8l2 2.5h6.5a1 1 0 0 1 1 1V15a1 1 0 0 1-1 1h-13a1 1 0 0 1-1-1z" />
  ),
  limits: (
    <>
      <path d="M3 14.5a7.5 7.5 0 1 1 14 0" />
      <path d="M10 12l3.5-4" />
    </>
  ),
  alerts: <path d="M5 14V9a5 5 0 0 1 10 0v5l1.5 1.5h-13zM8.5 17.5h3" />,
  models: (
    <>
      <path d="M10 2.5l6.5 3.75v7.5L10 17.5l-6.5-3.75v-7.5z" />
      <path d="M3.5 6.25L10 10l6.5-3.75M10 10v7.5" />
    </>
  ),
  playground: (
    <>
      <path d="M3 4.5h14v9.5H9l-4 3v-3H3z" />
      <path d="M6.5 8h7M6.5 11h4" />
    </>
  ),
  "admin-keys": (
    <>
      <circle cx="6.5" cy="13.5" r="3.5" />
      <path d="M9 11l7.5-7.5M13.5 6.5l2.5 2.5" />
    </>
  ),
  audit: (
    <>
      <path d="M5 2.5h7l3.5 3.5v11.5H5z" />
      <path d="M7.5 8.5H13M7.5 11.5H13M7.5 14.5h3" />
    </>
  ),
};

export function Icon({ of }: { of: Section }) {
  return (
    <svg
      viewBox="0 0 20 20"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.5"
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
    >
      {DRAWINGS[of]}
    </svg>
  );
}
