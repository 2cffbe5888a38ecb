#!/bin/sh
# as_user.sh PYTHON [TEST...]: run the tests of native programs as an ordinary user, with its own home and directories.
set -eu
user=$((20000 + $$ % 20000)) # another one for each run: its boxes lie below a directory of this number
venv_python=$1
shift
[ $# -gt 0 ] || set -- tests/native tests/workspace/native tests/workspace/stored/test_held_box.py tests/apps/cli/test_bind.py tests/apps/cli/test_try.py
skip() {
  echo "SKIPPED: native programs were not tested as uid $user: $1" >&2
  exit 0
}
[ "$(id -u)" = 0 ] || skip "only root can become another user"
command -v setpriv > /dev/null || skip "setpriv is not installed"
version=$("$venv_python" -c 'import sys; print(sys.version_info[:2])')
as_user() { setpriv --reuid "$user" --regid "$user" --clear-groups env -i PATH=/usr/bin:/bin "$@"; }
# The interpreter of the environment may be in root's home: then one of the system with the same version.
for python in "$(readlink -f "$venv_python")" /usr/bin/python3 ''; do
  [ "$(as_user "$python" -c 'import sys; print(sys.version_info[:2])' 2> /dev/null)" != "$version" ] || break
done
[ -n "$python" ] || skip "no Python $version is reachable for it"
place=$(mktemp -d /var/tmp/ramet-as-user-XXXXXX)
trap 'rm -rf "$place" "/var/tmp/ramet-native-$user"' EXIT
chmod 755 "$place"
packages=$("$venv_python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
cp -rl "$packages" "$place/packages" 2> /dev/null || { rm -rf "$place/packages"; cp -r "$packages" "$place/packages"; }
cp -r src/ramet tests pyproject.toml "$place"
mkdir "$place/home" "$place/tmp"
chown -R "$user:$user" "$place/home" "$place/tmp"
cd "$place"
as_user HOME="$place/home" TMPDIR="$place/tmp" PYTHONPATH="$place:$place/packages" PYTHONDONTWRITEBYTECODE=1 \
  "$python" -m pytest -p no:cacheprovider -q -n 2 "$@"
