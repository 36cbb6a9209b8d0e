/** A real OpenID provider, with the groups of four people. Whoever names one is that one. */

import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import Provider from "oidc-provider";

const GROUPS: Readonly<Record<string, readonly string[]>> = {
  alice: ["admins"],
  bob: ["readers"],
  carol: ["visitors"],
  dora: ["accountants"],
};

export interface RunningProvider {
  readonly issuer: string;
  /** Begin to answer, for one gateway. */
  serve(gatewayUrl: string): void;
  stop(): void;
}

export async function startProvider(): Promise<RunningProvider> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    issuer,
    serve: (gatewayUrl) => {
      const provider = new Provider(issuer, {
        clients: [
          {
            client_id: "tollhouse",
            client_secret: "tollhouse secret",
            redirect_uris: [`${gatewayUrl}/console/session/callback`],
            post_logout_redirect_uris: [`${gatewayUrl}/console`],
          },
        ],
        claims: { openid: ["sub", "groups"], email: ["email"], profile: ["name"] },
        cookies: { keys: ["of a test"] },
        pkce: { required: () => true },
        findAccount: (_, id) => ({
          accountId: id,
          claims: () => ({ sub: id, groups: GROUPS[id] ?? [], email: `${id}@example.com` }),
        }),
      });
      server.on("request", provider.callback());
    },
    stop: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
