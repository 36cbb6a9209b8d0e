"""The judge model: its prompts, answer tokens, scores, verdicts and quotas."""
