"""Commands about money: ledger, credits, caps and costs."""
