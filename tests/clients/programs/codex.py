"""Codex: a call of one of its own tools, the answer to the result, and a session that is resumed as the same conversation."""

import json
import os
import subprocess
from pathlib import Path
from urllib.request import Request, urlopen

home = Path("home")
home.mkdir()
(home / "config.toml").write_text(f"""
model = "{os.environ["MODEL"]}"
model_provider = "served"
[model_providers.served]
name = "served"
base_url = "{os.environ["OPENAI_BASE_URL"]}"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
""")
CODEX = ["node_modules/.bin/codex", "exec", "--skip-git-repo-check"]
for words in (["SAY <<<hello there>>>"], ["resume", "--last", "And again."]):
    run = subprocess.run(
        [*CODEX, *words],
        env=os.environ | {"CODEX_HOME": str(home.absolute())},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        check=True,
    )
    assert run.stdout.decode().strip() == "hello there", run.stdout
listed = Request(
    f"{os.environ['SERVER']}/api/conversations", headers={"authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}
)
(conversation,) = (each for each in json.load(urlopen(listed)) if each["client"].startswith("codex"))
assert conversation["turns"] == 4, conversation
