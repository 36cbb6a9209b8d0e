/** A real gateway with a past, for as long as the tests run. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { TestProject } from "vitest/node";
import { startProvider } from "./provider";

const ROOT = join(import.meta.dirname, "../..");
const PYTHON = join(ROOT, ".venv/bin/python");

/** Whether pages are timed, with a large organization. */
export const IS_TIMED = "TOLLHOUSE_TIMES_CONSOLE" in process.env;

/** What `tests/console/serve.py` tells. */
export interface Told {
  readonly base_url: string;
  /** Of a gateway with the judge of a trial, in front of the same organization. */
  readonly demonstration_base_url: string;
  /** Of a gateway without a judge that is no sandbox, in front of the same organization. */
  readonly unjudged_base_url: string;
  /** Of a gateway whose people sign in at a provider, in front of the same organization. */
  readonly people_base_url: string;
  /** Of that provider. */
  readonly issuer: string;
  readonly admin_key: string;
  readonly narrow_key: string;
  readonly reading_key: string;
  readonly project_key: string;
  /** Of a project whose requests an enforcing policy judges. */
  readonly judged_key: string;
  readonly failed_request_id: string;
  readonly project_id: string;
  readonly policy_id: string;
  readonly judging_policy_id: string;
}

declare module "vitest" {
  export interface ProvidedContext {
    told: Told;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const provider = await startProvider();
  const gateway = spawn(PYTHON, ["-m", "tests.console.serve", ...(IS_TIMED ? ["--crowded"] : [])], {
    cwd: ROOT,
    env: { ...process.env, PYTHONPATH: "src:.", TOLLHOUSE_TEST_ISSUER: provider.issuer },
    stdio: ["pipe", "pipe", "inherit"],
  });
  const ended = once(gateway, "exit");
  const lines = createInterface({ input: gateway.stdout });
  const first = await Promise.race([once(lines, "line"), ended]);
  if (gateway.exitCode !== null) throw new Error(`the gateway ended with ${gateway.exitCode}`);
  const told: Told = JSON.parse(String(first[0]));
  provider.serve(told.people_base_url);
  project.provide("told", { ...told, issuer: provider.issuer });
  return async () => {
    gateway.stdin.end();
    await ended;
    provider.stop();
  };
}
