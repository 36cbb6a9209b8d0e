/** As much of the provider as the tests use; it brings no types along. */
declare module "oidc-provider" {
  import type { RequestListener } from "node:http";

  interface Account {
    readonly accountId: string;
    claims(): Readonly<Record<string, unknown>>;
  }

  export interface Configuration {
    readonly clients: ReadonlyArray<Readonly<Record<string, unknown>>>;
    readonly claims: Readonly<Record<string, readonly string[]>>;
    readonly cookies: { readonly keys: readonly string[] };
    readonly pkce: { required(): boolean };
    findAccount(context: unknown, id: string): Account;
  }

  export default class Provider {
    constructor(issuer: string, configuration: Configuration);
    callback(): RequestListener;
  }
}
