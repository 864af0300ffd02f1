"""Summing up what one pipeline commits in a run."""

from __future__ import annotations

from dataclasses import replace

from rivermouth.run.report import (
    CommitReport,
    Listener,
    OpenReport,
    PassingOn,
    PipelineReport,
    RetryReport,
)


class Tally(PassingOn):
    """Passes everything on to ``listener`` and sums up one pipeline's commits in ``report``."""

    def __init__(self, listener: Listener) -> None:
        super().__init__(listener)
        self.report = PipelineReport("", 0, 0, 0, 0, 0.0)

    def opened(self, report: OpenReport) -> None:
        self.report = replace(self.report, sequence=report.sequence)
        super().opened(report)

    def committed(self, report: CommitReport) -> None:
        self.report = replace(self.report, sequence=report.sequence)
        if any(each.span for each in report.ranges):
            self.report = replace(
                self.report,
                commits=self.report.commits + 1,
                applied=self.report.applied + report.applied,
                quarantined=self.report.quarantined + report.quarantined,
            )
        super().committed(report)

    def tries_again(self, report: RetryReport) -> None:
        self.report = replace(self.report, retries=self.report.retries + 1)
        super().tries_again(report)
