/** The sign over the door. */

export function Mark() {
  return (
    <svg
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      strokeWidth="2"
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
    >
      <path d="M4 21V10l8-6 8 6v11" />
      <path d="M9 21v-5a3 3 0 0 1 6 0v5" />
      <path d="M2 21h20" />
    </svg>
  );
}
