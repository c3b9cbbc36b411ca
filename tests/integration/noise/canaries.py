"""Planted words of a noisy run: each represents a secret, or a source of contents."""

from __future__ import annotations

SECRETS = {
    "model": "canary-model/key+7f3a",
    "flower": "canary-flower-9c21",
    "collector": "canary-collector-5b0e",
    "runtime database": "canary/runtime+db@41",
    "gateway database": "canary/gateway+db@42",
    "signing": "canary-signing-key-of-more-than-32-bytes",
    "tool": "canary-tool-login-66d2",
    "tool store": "canary-tool-store-8ab1",
    "wrong password": "canary-wrong-password-3d",
}

CONTENTS = {
    "said": "xylophone",
    "slot": "parcelquokka",
    "result": "marimba",
    "worded": "glockenspiel",
    "document": "harpsichord",
    "submitted": "bassoon",
    "run": "clarinet",
    "action": "saxophone",
    "unknown task": "piccolo",
    "malformed": "trombone",
    "pickled": "vuvuzela",
    "invalid": "didgeridoo",
    "feedback": "accordion",
}
