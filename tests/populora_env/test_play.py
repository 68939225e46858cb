"""Tests of `populora_env.play`: the command, as a person meets it."""

import os
import signal
import subprocess
import sys
import time

import pytest

from populora_env.play import main

COMMAND = [sys.executable, "-m", "populora_env.play"]


def play(*flags, typed=""):
    done = subprocess.run([*COMMAND, *flags], input=typed.encode("utf-8", "surrogateescape"), capture_output=True)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def test_a_solver_types_an_answer_and_sees_verdict_and_reward():
    code, out, err = play("--task", "deduction", "--rounds", "2", "--style", "compact", typed="(\n1)\n.\n\n.\n")
    assert (code, err) == (0, "")
    assert "What does f return for this input?" in out
    assert "| <deduction>" in out
    assert "solver_0    wrong, reward -0.50" in out
    assert "no readable answer (format:no answer), reward -1.00" in out
    assert "Your reward is -1.00, -1.50 in all." in out
    assert "Your rewards add up to -1.50." in out


def test_a_right_answer_is_paid():
    flags = ("--task", "deduction", "--rounds", "1")
    shown = play(*flags, typed=".\n")[1]
    (gold,) = [line.split(" == ")[1].split("    <-")[0] for line in shown.split("\n") if "<- the output" in line]
    code, out, _ = play(*flags, typed=f"{gold}\n.\n")
    assert code == 0
    assert "Your reward is +1.00" in out


def test_a_proposer_types_a_problem():
    typed = "def f(x):\n    return x + 1\n.\n(3,)\n.\nnonsense\n.\n.\n"
    code, out, _ = play("--seat", "proposer", "--task", "abduction", "--rounds", "2", typed=typed)
    assert code == 0
    assert "Type a program that defines f" in out
    assert "f(3) == 4    <- an input that gives this output is asked for" in out
    assert "of 4 solved it" in out
    assert "no readable proposal" in out
    assert "reward -1.00" in out


def test_a_proposer_types_inputs_for_induction():
    typed = "(1,)\n(2,)\n(3,)\n(4,)\n.\na hint\n.\n"
    code, out, _ = play("--seat", "proposer", "--task", "induction", "--rounds", "1", typed=typed)
    assert code == 0
    assert "Type 4 inputs for this program" in out
    assert "proposer_0" in out


def test_a_text_may_end_with_the_input_and_the_game_with_it():
    code, out, _ = play("--task", "deduction", typed="1")
    assert code == 0
    assert "reward -" in out
    assert "The input ended" in out


@pytest.mark.parametrize("typed", ["\x1b[2J\x07\n.\n", "'\x1b]0;x\x07'\n.\n", "\udcff\0\n.\n", "x" * 100_000 + "\n.\n"])
def test_what_is_typed_steers_no_terminal(typed):
    code, out, err = play("--task", "deduction", "--rounds", "1", typed=typed)
    assert (code, err) == (0, "")
    assert all(char.isprintable() or char == "\n" for char in out)
    assert "Your reward is -" in out


def test_ctrl_c_leaves_with_its_exit_status():
    process = subprocess.Popen(
        COMMAND,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background job ignores it
    )
    try:
        for line in process.stdout:
            if b"Type the value" in line:
                break
        time.sleep(0.2)  # let it wait for input; earlier is no failure either
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=30)
    finally:
        process.kill()
        process.wait()
    assert (process.returncode, err) == (130, b"")
    assert out.endswith(b"You left the game.\n")


def test_help_teaches(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    out = capsys.readouterr().out
    for word in ("what to type", "what it pays", "--seat", "a single dot", "Ctrl-D", "examples"):
        assert word in out


@pytest.mark.parametrize("flags", [["--rounds", "0"], ["--seed", "-1"], ["--seat", "judge"], ["--task", "all"]])
def test_strange_flags_are_refused(flags, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(flags)
    assert "usage" in capsys.readouterr().err
