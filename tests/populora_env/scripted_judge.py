"""A judge that runs nothing: the stand-in for the verifier where a test needs verdicts of its own choice."""

from populora_env.types import ProposalVerdict, Status, Task, Verdict

OK = Verdict(status=Status.OK)
WRONG = Verdict(status=Status.WRONG)


class ScriptedJudge:
    """Proposals are valid unless the program says `invalid`; answers are correct if they say `right`."""

    def __init__(self, output="0"):
        """Make the judge; every gold output is `output`."""
        self.output = output
        self.calls = []
        self.owners = []
        self.closed = 0

    def check_proposals(self, proposals, *, owners=None):
        """Judge by the program's text."""
        self.calls.append(("proposals", len(proposals)))
        self.owners.append(owners)
        return [self._proposal(proposal) for proposal in proposals]

    def check_answers(self, attempts, *, owners=None):
        """Judge by the answer's text."""
        self.calls.append(("answers", len(attempts)))
        self.owners.append(owners)
        return [OK if "right" in answer.text else WRONG for _, answer in attempts]

    def close(self):
        """Count the call."""
        self.closed += 1

    def _proposal(self, proposal):
        if "invalid" in proposal.program:
            return ProposalVerdict(verdict=Verdict(status=Status.ERROR, detail="ValueError"))
        inputs = proposal.inputs
        visible = len(inputs) - len(inputs) // 2 if proposal.task is Task.INDUCTION else 0
        outputs = tuple("shown" if place < visible else self.output for place in range(len(inputs)))
        return ProposalVerdict(verdict=OK, inputs=inputs, outputs=outputs)


def proposal_text(body="return a", given="(1,)"):
    return f"<answer>\n<program>\ndef f(a):\n    {body}\n<input>\n{given}"


def induction_text(inputs=("(1,)", "(2,)", "(3,)", "(4,)"), message="hint"):
    return "<answer>\n" + "\n".join(f"<input>\n{given}" for given in inputs) + f"\n<message>\n{message}"


def answer_text(text):
    return f"<answer>\n{text}"
