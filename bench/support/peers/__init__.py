"""Other gateways that Tollhouse is measured beside: what they are, installing and running them."""
