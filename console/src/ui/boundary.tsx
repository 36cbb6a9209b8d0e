/** A page that breaks must not take the menu with it. */

import { Component, type ReactNode } from "react";

interface BoundaryState {
  readonly isBroken: boolean;
}

/** Also where a part of the console cannot be loaded because the gateway was upgraded meanwhile. */
export class Boundary extends Component<{ readonly children: ReactNode }, BoundaryState> {
  override state: BoundaryState = { isBroken: false };

  static getDerivedStateFromError(): BoundaryState {
    return { isBroken: true };
  }

  override render(): ReactNode {
    if (!this.state.isBroken) return this.props.children;
    return (
      <div className="notice notice-bad" role="alert">
        <p>
          This page has failed. If the gateway was upgraded, load the page again; you will be asked
          for your key.
        </p>
        <button
          type="button"
          className="button button-small"
          onClick={() => window.location.reload()}
        >
          Load again
        </button>
      </div>
    );
  }
}
