"""Who a caller is and what they may do: credentials, rules by route, rates, and where the gateway may listen."""
