export HOME=/home/user
mkdir -p /proj/pkg && cd /proj
git config --global user.email a@b.c; git config --global user.name n; git config --global init.defaultBranch main
cat > pkg/__init__.py <<'X'
def add(a, b):
    return a + b
X
cat > test_pkg.py <<'X'
import unittest
from pkg import add
class T(unittest.TestCase):
    def test_add(self):
        self.assertEqual(add(1, 2), 3)
if __name__ == "__main__":
    unittest.main()
X
cat > hello.c <<'X'
#include <stdio.h>
int main(int argc, char **argv) { printf("hello %d\n", argc); return 7; }
X
printf 'all: out.txt\nout.txt: in.txt\n\ttr a-z A-Z < in.txt > out.txt\n\nclean:\n\trm -f out.txt\n\nfail:\n\texit 3\n' > Makefile
echo text > in.txt
mkdir -p /origin && cd /origin && git init -q && printf 'def f(x):\n    return x + 1\n' > calc.py && printf 'from calc import f\nassert f(1) == 2\nprint("ok")\n' > check.py && git add . && GIT_AUTHOR_DATE='2024-01-01T00:00:00Z' GIT_COMMITTER_DATE='2024-01-01T00:00:00Z' git commit -qm 'first' 
