/** Says that a policy which was never published has no effect. */

export function DraftNotice() {
  return (
    <p className="notice">
      A draft affects nothing: no request is judged, recorded or refused by it until you publish it.
    </p>
  );
}
