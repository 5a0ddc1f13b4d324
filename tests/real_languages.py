"""The other grammars of the data folder with texts: small ones, and whole programming languages.

The grammars are parts of their languages, with quirks: what is right here is what python-lark parses.
"""

from real_inputs import Real

SMALL = [
    Real(
        "tiny",
        False,
        ("dd", "cdd", "dcd", "ccdccccd", "cdcd"),
        ("", "d", "ccd", "ddd", "c d", "cdcdd"),
    ),
    Real(
        "calc",
        False,
        ("1", "(1.5+2)*3", "12 / 4 - .5", "((1)) *2.\n", "1+2-3*4/5", "\t7\r\n", "1e5+1E-2"),
        ("", "1+", "-1", "(1", "1 2", "1.2.3", "1(2)", "()"),
    ),
    Real(
        "invariants",
        False,
        (
            "```\nloop invariant x >= 0;\n```",
            "```\nloop invariant \\true && ~(i < n);\nloop invariant f(a, -1) == 2.5 * 'c' ==> \\false;\n```",
            '```\nloop\tinvariant a ? b : c != "s\\"t" || (x) <==> y <= 3 ^ 2;\n```',
            "```\nloopinvariant (((x))) > '\\\\' + \"é\\n\";\n```",
            "``` \nloop invariant ~x == y; \n  loop invariant 1;\n ```",
        ),
        (
            "",
            "```\n```",
            "```loop invariant x;\n```",
            "```\nloop invariant x\n```",
            "```\nloop invariant x;```",
            "```\nloop invariant x = y;\n```",
            "```\nloop invariant 'ab';\n```",
            "```\nloop invariant x;\n```\n",
        ),
        (
            "```\nloop invariant loopx % invariant1;\n```",
            "```\nloop invariant loop;\nloop invariant invariant(loop) > 1;\n```",
        ),
    ),
    Real(
        "prover9",
        False,
        (
            "Predicates:\nDog(x) ::: a dog\nPremises:\nDog(rex) ::: fact\nConclusion:\nDog(rex) ::: so\n",
            "Predicates: L(x, y):::\nP(1) ::: é\nPremises: ∀x (L(x, b) → P(x)) ::: all\n"
            "∃y (¬P(y) ∧ P(2)) :::\nConclusion: (P(a) ∨ P(z)) ⊕ P(b) ↔ P(c) ::: so\n",
            "Predicates:Aa(b)::: ::: \nPremises:¬¬Aa(0)::: \t\nConclusion:∀ q(Aa(q)):::\n",
            "Predicates:\n  P0(a_B9)::: 日本\nPremises:\n  (∀x (P0(x)))∧ P0(y) ::: \n"
            "  P0(1) → P0(2) → P0(3) :::!\nConclusion:\n ¬(P0(x)) :::\n\n",
            "Predicates:P(x):::\nPremises:¬∃1(P(1)∧(P(0)⊕P(2))):::\nConclusion:P(x,y , z):::\n\t",
        ),
        (
            "",
            "Predicates:\nDog(x)\nPremises:\n",
            "Predicates:\nPremises:\nDog(a) :::\nConclusion:\nDog(a) :::\n",
            "Predicates:\nDog(X) :::\n",
            "Predicates:\nDog(x) :::\nPremises:\nDog(x) :::\nConclusion:\n",
            "Predicates:\nDog(x) :::\nPremises:\n∀x Dog(x) :::\n",
            "Predicates:\nP_q(x) :::\n",
            "Predicates:\nP(x) :::\nPremises:\nP(x) :::\nConclusion:\nP(x) :::",
        ),
    ),
]

# What is not named after one grammar holds for both versions of it.
JAVA = (
    "",
    "package a.b;\nimport c.d.*;\nimport e;\npublic final class A extends B implements C, D { }",
    "class A {\n  private int x = 12, y[] = {1, 2};\n  A(int a) { this(a); x = a; }\n}",
    "interface I { int f(char c, String[] s) throws E; float X = 3.25; }",
    "class A { boolean f() { if (a == b && !c) return true; else while (x >> 1 != ~y) { break; } } }",
    'class A { int f() { switch (x) { case 1: y = (int) z; default: throw new E("a"); } } }',
    "class A { int f() { try { a.b(1).c[2]--; } catch (E e) { l: do ; while (x instanceof T); } "
    "finally { super.g(); } } }",
)
JAVA_WRONG = (
    "class { }",
    "class A { int x }",
    "class A { int f() { int = 3; } }",
    "class A { int x = 1.; }",
    "class A { int x = a b; }",
    "class A { f() }",
    "class A { int f() { x + 1; } }",
    "class A { int x = 1 ; } /",
)
JAVA_CONTEXTUAL = (
    "classA { }",
    "class class { }",
    "package a.int; import import;",
    "interface A extends for, while { int int; }",
    "class A { int f(int if) { a.class(); return x.new + 1; } int this; }",
)
PYTHON = (
    "",
    "\n\n# c\n",
    "def f(a, b=2, *c, **d): return a + b\n",
    "from ..a import (b as c, d)\nimport e.f\n",
    "x = y if not z is None else lambda a, b: a ** -b\n",
    "d = {1: 2, **e}; s = {*a, b}\na[1:2, ::3].b += c @ d // 4 \\\n  << 0o5\n",
    'try: pass\nexcept E as e: del x\nfinally: assert \'é"\' <> r"\\d", ...\n',
    "@a.b(1)\nasync def f(): yield from g\nx: int = .5e-3\neof",
)
PYTHON_WRONG = ("x = 1", "if a:\n  b\n", "x = = 1\n", "x = 1 2\n", "import\n", "'''a\n", "x = 0b1\n")
PYTHON_CONTEXTUAL = (
    "print(f\"a{b}\", '''l\n\"s''') # end\n",
    "return return\n",
    "eof\n",
)
GO_CONTEXTUAL = (
    "packagep\n",
    "package package;",
    "package p\nvar func = 1\nvar x = a.type\n",
    "package p;func if() {}\n",
)
GO_WRONG = (
    "",
    "package main",
    "package main\nx\n",
    'import "a"\n',
    "package p\nfunc f() { x := }\n",
    "package p\nvar a = 08\n",
    "package p; var x = 'ab'\n",
)
GO = (
    '\npackage a;import ("b"; . `c\n`)\n',
    "package p\nvar a, b = 1, 0x1F\nconst c = 2.5e3\ntype T struct { x int; *U }\n",
    "package p\n/* c */ func f(a int, b []string) (int, error) { return a + 1, '\\n' }\n",
    "package p // c\nfunc (t *T) g() {\nif x := 1; x < y {\nz++\n} else {\nz -= 2\n}\n}\n",
    'package p\nfunc f() {\nselect {\ncase x = <-c:\ndefer h("é\\n", []int{1, 2})\n}\n}\n',
    "package p\ntype I interface { f(int) string; ~int | T\n}\n",
)
PAPER_GO = (
    'package main\n\nimport "fmt"\n\nfunc main() {\n\tfmt.Println("hi", x)\n}\n',
    'package main\nimport ("a"\n. "c"\n)\n',
    "package p\nfunc f() {\nfor i := 0; i < 9; i++ {\na[i] = b[1:2]\n}\n}\n",
    "package p\nfunc f() {\nfor _, v := range x {\ngo g(v)\n}\n}\n",
    'package p // c\nvar s = `raw` + "é\\n"\nfunc f[T any](x T)\n',
    "package p;type chan T;",
    "package p\nvar x = func() { L: goto L\n }\n",
)

LARGE = [
    Real(
        "sql",
        False,
        (
            "SELECT name, price FROM goods WHERE price > 10 AND name LIKE 'a%' ORDER BY price DESC LIMIT 5;",
            "SELECT a, sum(b) over (partition by c order by d) FROM t AS u LEFT JOIN v ON u.id = v.id",
            "SELECT a FROM t WHERE b BETWEEN 1 AND 2 OR c IN (SELECT d FROM e) LIMIT 1",
            "SeLeCt\n\ta + b * 3 - c / 2\nfRoM (select * from t) AS s -- c\n",
            "SELECT 'é日', \"x\", case when a = 1then 'x' else b end FROM t",
        ),
        ("", "SELECT FROM t;", "SELECT a FROM t;;", "SELECT 'a FROM t", "SELECT a b c FROM t"),
        (
            "SELECT a FROM t, u CROSS JOIN v UNION ALL SELECT b FROM u",
            "SELECTjoinx FROM joiny",
            "SELECT from, order FROM select",
        ),
    ),
    Real(
        "java",
        False,
        (*JAVA, "class A { L<K> m = new L<>(); /* c\n */ R r = () -> { return 'x'; }; // d\n }"),
        (*JAVA_WRONG, 'class A { int x = "a\\"; }'),
        JAVA_CONTEXTUAL,
    ),
    Real("python", False, PYTHON, PYTHON_WRONG, PYTHON_CONTEXTUAL),
    Real("go", False, GO, (*GO_WRONG, "package p\nvar s = `raw"), (*GO_CONTEXTUAL, "package p;type chan T;")),
    Real(
        "paper/java",
        False,
        (*JAVA, "class A { int x = \"a\\\", y = /'[^\n\r']?'/; }"),
        (*JAVA_WRONG, "/**/ import a;"),
        JAVA_CONTEXTUAL,
    ),
    Real(
        "paper/go",
        False,
        PAPER_GO,
        (*GO_WRONG, 'package p\nvar s = "a\nb"\n'),
        GO_CONTEXTUAL,
        known=("]a{} {};};",),  # for _, v := range [
    ),
    Real("paper/python", False, PYTHON, PYTHON_WRONG, PYTHON_CONTEXTUAL),
]
