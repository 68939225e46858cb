"""When two answers are the same: pairs whose first is for the most part an answer of one of the benchmarks."""

from __future__ import annotations

import pytest

from league.evaluation.math_answers import final_answer, same_answer, same_expression

pytest.importorskip("math_verify", reason="needs the extra `eval`")

EQUIVALENT = (
    (r"\frac{3}{4}", r"\dfrac{3}{4}"),
    (r"\frac65", r"\frac{6}{5}"),
    (r"\frac{1}{4}", "0.25"),
    (".35625", "0.35625"),
    (r"\frac{33}{100}", "0.33"),
    ("58,500", "58500"),
    ("58,500", "58{,}500"),
    ("58,500", r"\$58,500"),
    (r"5.4 \text{ cents}", "5.4"),
    (r"55^\circ", "55"),
    (r"120^\circ", r"120^{\circ}"),
    (r"120^\circ", "120 degrees"),
    (r"\text{east}", "east"),
    (r"\text{(E)}", "E"),
    (r"\text{(B)}", "(B)"),
    (r"\text{Navin}", r"\textbf{Navin}"),
    (r"\left( 3, \frac{\pi}{2} \right)", r"(3,\pi/2)"),
    (r"\left( \frac{3}{2}, -13 \right)", "(1.5,-13)"),
    ("(1,-16,-4,43)", "(1, -16, -4, 43)"),
    (r"(0,9) \cup (9,36)", r"(9,36)\cup(0,9)"),
    (r"(2,12) \cup (12,102)", r"\left(2,12\right) \cup \left(12,102\right)"),
    ("8n^2 + 4n + 1", "1+4n+8n^{2}"),
    ("-13x+3", "3-13x"),
    ("6 - 5i", "-5i+6"),
    (r"8 \pi", r"8\pi"),
    (r"\pi", r"\frac{2\pi}{2}"),
    ("2k", r"2 \cdot k"),
    (r"\begin{pmatrix} 1/5 \\ -18/5 \end{pmatrix}", r"\begin{pmatrix} 0.2 \\ -3.6 \end{pmatrix}"),
    (r"$\frac{9 \sqrt{3}}{20}$", r"\frac{9}{20}\sqrt{3}"),
    ("$2^{1009}$", r"2^{1000}\cdot 2^9"),
    (r"$M=\frac{9}{32} \sqrt{2}$", r"\frac{9\sqrt2}{32}"),
    ("5,15", "15, 5"),
    ("5,15", r"\{5,15\}"),
    ("$(1,1), (3,2)$", "(3,2),(1,1)"),
    (r"$90^{\circ}$,$60^{\circ}$", "60, 90"),
    (r"\sqrt{2}", "2^{1/2}"),
    ("8.7e8", r"8.7\times 10^8"),
    ("1e-3", "0.001"),
    ("7.02e5", "702000"),
    ("+2", "2"),
    ("27.0", "27"),
    ("204", "204."),
    ("70", "70"),
    ("4.2", r"4.2\%"),
    (r"50\%", "0.5"),
    (r"50\%", "50"),
    (r"\frac{1}{2}", r"50\%"),
    ("1,-2", r"x=1 \text{ or } x=-2"),
    (r"3 \pm \sqrt{2}", r"3+\sqrt{2}, 3-\sqrt{2}"),
    (r"x \in [0,1]", "[0,1]"),
    ("[-2,7]", r"\left[-2,7\right]"),
    (r"(-\infty, 2) \cup (3, \infty)", r"(3,\infty)\cup(-\infty,2)"),
    ("10 cm", r"10\text{ cm}"),
    (r"864 \mbox{ inches}^2", "864"),
    ("y = 2x+3", "2x+3"),
    ("18", r"\$18"),
    ("1,000,000", "1000000"),
    (r"\frac{\omega}{s^2}", r"\omega s^{-2}"),
    (r"\frac{a M^{1 / 3}}{G M^{2 / 3}+b}", r"\frac{aM^{1/3}}{b+GM^{2/3}}"),
    (r"\sqrt{18}", r"3\sqrt{2}"),
    (r"\frac{\sqrt{2}}{2}", r"\frac{1}{\sqrt{2}}"),
    ("x^2-1", "(x-1)(x+1)"),
    (r"\log 8", r"3\log 2"),
    (r"\frac{14}{3}", r"4\frac{2}{3}"),
    (r"\sin^2 x", r"(\sin x)^2"),
    ("1/3", r"\frac13"),
    ("e^{2}", r"e \cdot e"),
    (r"\frac{2k + 2}{4k + 1}", r"\frac{2(k+1)}{1+4k}"),
    (r"-\frac{3}{4}", r"\frac{-3}{4}"),
)

DIFFERENT = (
    (r"\frac{3}{4}", r"\frac{4}{3}"),
    (r"\frac65", "65"),
    (r"\frac{1}{4}", "0.2"),
    (".35625", "35625"),
    ("58,500", "58"),
    ("58,500", "585"),
    (r"5.4 \text{ cents}", "54"),
    (r"55^\circ", "56"),
    (r"\text{east}", "west"),
    (r"\text{(E)}", "(B)"),
    (r"\text{(E)}", "e"),
    (r"\text{Navin}", "Navi"),
    (r"\left( 3, \frac{\pi}{2} \right)", r"(\pi/2,3)"),
    (r"\left( \frac{3}{2}, -13 \right)", "(1.5,13)"),
    ("(1,-16,-4,43)", "(1,-16,-4)"),
    (r"(0,9) \cup (9,36)", "(0,36)"),
    (r"(0,9) \cup (9,36)", r"[0,9)\cup(9,36)"),
    ("(2,4)", "[2,4]"),
    ("(2,4)", "(4,2)"),
    ("(2,4)", r"\{2,4\}"),
    ("8n^2 + 4n + 1", "8n^2+4n-1"),
    ("-13x+3", "13x+3"),
    ("6 - 5i", "6+5i"),
    (r"8 \pi", "8"),
    (r"\pi", "3.14"),
    ("2k", "2"),
    (r"\begin{pmatrix} 1/5 \\ -18/5 \end{pmatrix}", r"\begin{pmatrix} -18/5 \\ 1/5 \end{pmatrix}"),
    (r"\frac{9 \sqrt{3}}{20}", r"\frac{9\sqrt{2}}{20}"),
    ("2^{1009}", "2^{1010}"),
    ("5,15", "5"),
    ("5,15", "5,15,25"),
    ("5,15", "5,5"),
    ("5,15", "515"),
    ("(1,1),(3,2)", "(1,1),(2,3)"),
    (r"$90^{\circ}$,$60^{\circ}$", "90,90"),
    (r"\sqrt{2}", "1.41"),
    ("8.7e8", "8.7"),
    ("1e-3", "0.01"),
    ("+2", "-2"),
    ("204", "240"),
    (r"50\%", "5"),
    (r"50\%", "0.05"),
    (r"\frac{1}{2}", r"5\%"),
    ("1,-2", "-1,2"),
    (r"3 \pm \sqrt{2}", r"3+\sqrt{2}"),
    ("[-2,7]", "[-2,7)"),
    (r"(-\infty, 2) \cup (3, \infty)", r"(-\infty,3)\cup(2,\infty)"),
    ("10 cm", "100"),
    ("1,000,000", "1,000"),
    ("y = 2x+3", "2x-3"),
    (r"\frac{\sqrt{2}}{2}", r"\frac{2}{\sqrt{2}}"),
    ("x^2-1", "x^2+1"),
    (r"\log 8", r"2\log 3"),
    (r"\frac{14}{3}", r"4\cdot\frac{2}{3}"),
    ("e^{2}", "e"),
    ("14", ""),
    ("14", "14x"),
    ("14", "14, 15"),
    ("0", "1"),
    ("x", "y"),
    ("7", r"\text{seven}"),
    ("-1", "1"),
    ("2", "2 or 3"),
    ("16", "4^{3}"),
    ("3", "3!"),
    ("12", r"\frac{12}{}"),
)


@pytest.mark.parametrize(("gold", "given"), EQUIVALENT)
def test_equivalent_answers_are_right_both_ways(gold: str, given: str) -> None:
    assert same_answer(gold, given, same_expression)
    assert same_answer(given, gold, same_expression)


@pytest.mark.parametrize(("gold", "given"), DIFFERENT)
def test_different_answers_are_wrong(gold: str, given: str) -> None:
    assert not same_answer(gold, given, same_expression)


def test_a_tolerance_holds_where_the_data_name_one() -> None:
    assert same_answer("4.2", "4.26", same_expression, atol=0.1)
    assert not same_answer("4.2", "4.36", same_expression, atol=0.1)
    assert not same_answer("4.2", "4.26", same_expression)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (r"So $x = 3$, hence \boxed{\frac{1}{2}} and later \boxed{\{1, \frac{2}{3}\}}.", r"\{1, \frac{2}{3}\}"),
        (r"\boxed{1} and then \boxed{2", "1"),
        (r"\fbox{7}", "7"),
        ("6 + 8 = 14\n#### 14", "14"),
        ("The answer is 42.", "42"),
        ("The final answer is: $\\frac{1}{3}$", r"$\frac{1}{3}$"),
        ("first 3 eggs, then 1,250 dollars", "1,250"),
        ("I do not know", None),
        ("", None),
    ],
)
def test_the_final_answer_is_found(text: str, answer: str | None) -> None:
    assert final_answer(text) == answer
