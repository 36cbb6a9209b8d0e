/** The end of a form in a dialog: why it was refused, and the buttons that leave and send it. */

import type { Act } from "./loading";
import { Refusal } from "./refusal";

interface FormEndProperties {
  readonly act: Act;
  readonly verb: string;
  readonly isDisabled?: boolean;
  readonly onClose: () => void;
}

export function FormEnd({ act, verb, isDisabled = false, onClose }: FormEndProperties) {
  return (
    <>
      {act.failure !== null && <Refusal failure={act.failure} />}
      <div className="row row-end">
        <button type="button" className="button" onClick={onClose}>
          Cancel
        </button>
        <button type="submit" className="button button-main" disabled={act.isBusy || isDisabled}>
          {verb}
        </button>
      </div>
    </>
  );
}
