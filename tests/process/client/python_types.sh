#!/usr/bin/env bash
# Installs the Python client with pip, and checks it and a program that uses it with mypy --strict; a
# program that misuses it is refused.
#
#   tests/process/client/python_types.sh BIN_DIR
#
# Installs mypy with pip below BIN_DIR. Exits with 77 and one line where that is not possible.
set -euo pipefail
. "$(dirname "$0")/../http/script.sh" "$1"
fail() { echo "$1" >&2; exit 1; }

python_with mypy
# The installation builds in the folder that it installs from.
cp -r "$root/tools/client/python" "$work/source"
"$python" -m pip install --quiet --disable-pip-version-check --no-deps --target "$work/site" "$work/source" \
  >"$work/install.txt" 2>&1 || skip "pip cannot install the client: $(tail -n 1 "$work/install.txt")"
[ -e "$work/site/leasehold_client/py.typed" ] || fail "the installed package has no types"
check() { MYPYPATH=$work/site "$python" -m mypy --strict --cache-dir "$bin/mypy-venv/cache" "$@"; }

cat >"$work/story.py" <<'PROGRAM'
import asyncio

from leasehold_client import AsyncSession, Completed, Session, TextOptions

options: TextOptions = {"max_tokens": 20, "temperature": 0.7, "stop": ["."]}


def plain() -> Completed | None:
    with Session("alice") as session:
        for token in session.generate("Once", **options):
            print(token.text, token.logprob)
        return session.result


async def asynchronous() -> list[str]:
    async with AsyncSession("alice", worker="w1") as session:
        ids: list[int] = [token.id async for token in session.generate("Once", **options)]
        return [session.lease.id if session.lease else "", *map(str, ids)]


if __name__ == "__main__":
    print(plain(), asyncio.run(asynchronous()))
PROGRAM
check "$work/site/leasehold_client" "$work/story.py"
sed 's/"max_tokens": 20/"max_token": 20/; s/token.logprob/token.logits/' "$work/story.py" >"$work/wrong.py"
! check "$work/wrong.py" >"$work/errors.txt" || fail "mypy accepts a wrong name"
grep -q 'max_token"' "$work/errors.txt" && grep -q '"Token" has no attribute "logits"' "$work/errors.txt" ||
  fail "mypy does not name what is wrong: $(cat "$work/errors.txt")"
